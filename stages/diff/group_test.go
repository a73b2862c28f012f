package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/text"
)

// groupsWithin shows which blocks belong together, as "old + old = new + new".
func groupsWithin(old, new []string, l limits) []string {
	a, b := analyze(old...), analyze(new...)
	c := &comparison{old: a, new: b, symbols: newSymbolTable(), limits: l}
	var out []string
	for _, s := range c.groupUnits(c.pairUnits()) {
		var o, n []string
		for _, u := range s.old {
			o = append(o, unitText(a, u))
		}
		for _, u := range s.new {
			n = append(n, unitText(b, u))
		}
		out = append(out, strings.Join(o, " + ")+" = "+strings.Join(n, " + "))
	}
	return out
}

func TestLonelyBlocks(t *testing.T) {
	tests := []struct {
		name     string
		old, new []string
		want     []string
	}{
		{"half of the larger in any order", []string{"a b c d", "k k k"}, []string{"k k k", "d c b z"},
			[]string{"a b c d = d c b z"}},
		{"less than half of the larger", []string{"a b c d e", "k k k"}, []string{"k k k", "d c z y x"},
			[]string{"a b c d e = ", " = d c z y x"}},
		{"counted with repeats", []string{"a a a q", "k k k"}, []string{"k k k", "q x a y a z"},
			[]string{"a a a q = q x a y a z"}},
		// Each of a, b, c is in both old blocks, so none of them ties the new one to either.
		{"no token of their own", []string{"a b c d1 d2 d3", "c b a e1 e2 e3", "k k k"}, []string{"k k k", "x b y c z a"},
			[]string{"a b c d1 d2 d3 = ", "c b a e1 e2 e3 = ", " = x b y c z a"}},
		// p is only in the first and the new block, q only in the second and the new one.
		{"the one with most in common", []string{"p r x1 x2", "s t q y1", "k k k"}, []string{"k k k", "q t s r p z"},
			[]string{"p r x1 x2 = ", "s t q y1 = q t s r p z"}},
		{"of equals the first", []string{"p r x1", "s t x2", "k k k"}, []string{"k k k", "t s r p"},
			[]string{"p r x1 + s t x2 = t s r p"}},
		{"lines of a list", []string{"cook", "p e", "d a", "go developer fintech"}, []string{"senior go developer", "cook", "p e", "d a"},
			[]string{" = senior go developer", "go developer fintech = "}},
		{"lines of a list, almost the same", []string{"cook", "p e", "d a", "go developer 10"}, []string{"go developer 11", "cook", "p e", "d a"},
			[]string{"go developer 10 = go developer 11"}},
		{"too few for a list", []string{"cook", "p e", "go developer fintech"}, []string{"senior go developer", "cook", "p e"},
			[]string{"go developer fintech = senior go developer"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := groupsWithin(tt.old, tt.new, defaultLimits); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestOverTheGroupingCap: blocks that are too many to diff are compared by the tokens
// they share.
func TestOverTheGroupingCap(t *testing.T) {
	var old, new, want []string
	for i := range 40 {
		o := fmt.Sprintf("page %d says a%d b%d c%d today", i, i, i, i)
		n := fmt.Sprintf("page %d says b%d c%d a%d now", 100+i, i, i, i)
		old, new, want = append(old, o), append(new, n), append(want, o+" = "+n)
	}
	tight := limits{units: 64 << 20, grouping: 3000, group: 16 << 20, allGroups: 64 << 20}
	if got := groupsWithin(old, new, tight); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// With no room at all nothing is compared, and nothing fails.
	if got := groupsWithin(old, new, limits{}); len(got) != 80 {
		t.Errorf("%d groups, want 80", len(got))
	}
}

// TestOverTheRegionCap: what is too much to diff is replaced as a whole, between what both
// ends have in common.
func TestOverTheRegionCap(t *testing.T) {
	a, b := analyze("one two a b c d three"), analyze("one two d c b a three")
	groups, _ := diffWithin(a, b, withGroupingLimit(limits{units: 1 << 20, grouping: 1 << 20, group: 3, allGroups: 1 << 20}))
	want := []string{"-a b c d +d c b a"}
	if got := formatGroups(groups); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRecords: where no element holds them, blocks that come again in one order are items.
func TestRecords(t *testing.T) {
	entry := func(i int) []string {
		return []string{fmt.Sprintf("subject%d", i), fmt.Sprintf("%d points by author%d", i, i), "read more"}
	}
	list := func(from, n int) (blocks []string) {
		for i := from; i < from+n; i++ {
			blocks = append(blocks, entry(i)...)
		}
		return blocks
	}
	long := strings.Repeat("word ", 25)
	doc := func(parts ...[]string) *text.Doc { return text.Analyze(strings.Join(slices.Concat(parts...), "\n")) }
	top, end := []string{"Entries of today"}, []string{"All rights reserved", "Imprint"}
	for _, tt := range []struct {
		name     string
		old, new *text.Doc
		want     []string
	}{
		{"one more on top", doc(top, list(2, 4), end), doc(top, list(1, 5), end), []string{"new subject1"}},
		{"all are new", doc(top, list(1, 4), end), doc(top, list(11, 3), end),
			[]string{"gone subject1", "gone subject2", "gone subject3", "gone subject4", "new subject11", "new subject12", "new subject13"}},
		{"all but one left", doc(top, list(1, 5), end), doc(top, list(5, 1), end), []string{"gone subject1", "gone subject2", "gone subject3", "gone subject4"}},
		{"an edit", doc(top, list(1, 4), end), doc(top, list(1, 3), []string{"subject4", "90 points by author4", "read more"}, end),
			[]string{"changed subject4"}},
		{"an edit of what is around", doc(top, list(1, 4), end), doc(top, list(1, 4), end[:1]), []string{" "}},
		{"two of them are too few", doc(top, list(1, 2), end), doc(top, list(2, 2), end), []string{" ", " ", " ", " ", " "}},
		{"a word that comes again by chance", doc(top, []string{"one docs", "two", "three docs", "four", "five docs", "six"}, end),
			doc(top, []string{"one docs", "two", "other docs", "four", "five docs", "six"}, end), []string{" "}},
		{"headings and prose", doc([]string{"1. First", long + "a b c", long, "2. Second", long + "d", long, "3. Third", long + "e f", long}),
			doc([]string{"1. First", long + "a x c", long, "2. Second", long + "d", long, "3. Third", long + "e f", long}), []string{" "}},
	} {
		got := []string{}
		for _, g := range Diff(tt.old, tt.new) {
			got = append(got, g.Item+" "+g.Title)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestRecordsOfAnotherPeriod: words that come again at every third block say nothing of records of two blocks.
func TestRecordsOfAnotherPeriod(t *testing.T) {
	page := func(fourth string) *text.Doc {
		return text.Analyze(strings.Join([]string{
			"улицы с. книга. домов большая большими и большая и улицы цены не Дома домов", "12. улицы цены дом ₽ Цены",
			"Дома ★. моя. поёт большой Книгу", fourth, "дом поёт Дома цены Не. на мой Книгу новый книгами мой",
			"★ книга Книгу и Книгу книги. улица большой 12% 12 ₽ большая на новый",
			"Не большими Цены дом ≥ края. улицы цена зелёный. петь книга не",
		}, "\n") + "\n")
	}
	old, new := page("₽ зелёный 365 петь не. лес"), page("₽ ★ 365 петь не. лес")
	for _, g := range Diff(old, new) {
		if g.Item != "" {
			t.Errorf("%s: a block is taken for an item", g.Title)
		}
	}
}

// TestTitles compares lists in which several items change at once, and only their titles say which is which.
func TestTitles(t *testing.T) {
	rows := func(all ...string) string {
		var b strings.Builder
		for _, row := range all {
			b.WriteString("\x02" + strings.ReplaceAll(row, "|", "\n") + "\n\x03")
		}
		return b.String()
	}
	for name, tt := range map[string]struct {
		old, new string
		want     []string // what became of which item
	}{
		"rooms": {rows("Room 1|free", "Room 2|free", "Room 3|free", "Room 4|held"), rows("Room 1|free", "Room 2|free", "Room 3|full", "Room 4|free"),
			[]string{"changed Room 3", "changed Room 4"}},
		"times": {rows("9:00|sold out for good", "10:00|back in two weeks", "11:00|free"), rows("9:00|back in two weeks", "10:00|free", "11:00|free"),
			[]string{"changed back in two weeks", "changed free"}},
		"states longer than names": {rows("Cup|in stock", "Bow|out of stock, back in two weeks"), rows("Cup|out of stock, back in two weeks", "Bow|in stock"),
			[]string{"changed Cup", "changed Bow"}},
		"labels": {rows("Cup: in stock", "Bow: out of stock, back in two weeks"), rows("Cup: out of stock, back in two weeks", "Bow: in stock"),
			[]string{"changed Cup: out of stock, back in two weeks", "changed Bow: in stock"}},
		"a third cell": {rows("Room 1|free|upstairs", "Room 2|held|upstairs"), rows("Room 1|held|upstairs", "Room 2|free|upstairs"),
			[]string{"changed Room 1", "changed Room 2"}},
		"ranks":          {rows("1|Ares|7", "2|Zeus|6", "3|Hera|5"), rows("1|Zeus|8", "2|Ares|7", "3|Hera|5"), []string{"changed Ares", "changed Zeus"}},
		"labelled ranks": {rows("rank: 1|name: Ares", "rank: 2|name: Zeus"), rows("rank: 1|name: Zeus", "rank: 2|name: Ares"), []string{"changed Ares", "changed Zeus"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, g := range Diff(analyze(tt.old), analyze(tt.new)) {
				if g.Item != "" {
					got = append(got, g.Item+" "+g.Title)
				}
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
