package oracle

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// page makes a version of blocks; one that begins with "*" is a list item, cells of a
// row are separated by "|".
func page(blocks ...string) Page {
	var p Page
	at := 0
	add := func(text string, items []int) {
		p = append(p, Block{Text: text, Offset: at, Items: items})
		at += len(text) + 1
	}
	for i, b := range blocks {
		row, ok := strings.CutPrefix(b, "*")
		if !ok {
			add(b, nil)
			continue
		}
		for cell := range strings.SplitSeq(row, "|") {
			add(cell, []int{i + 1})
		}
	}
	return p
}

// claimStrings lists what must be reported, such as "added argus", and what may be, with "maybe" before it.
func claimStrings(e *Expectation) []string {
	got := []string{}
	for _, c := range e.claims {
		if len(c.must) > 0 {
			got = append(got, c.event+" "+c.key.spelling)
		} else {
			got = append(got, "maybe "+c.event+" "+c.key.spelling)
		}
	}
	slices.Sort(got)
	return got
}

var english = &Language{
	Stop: map[string]bool{"the": true, "of": true, "and": true, "who": true},
	Stem: func(w string) string { return strings.TrimSuffix(w, "s") },
}

func TestExpect(t *testing.T) {
	both := func(s Subscription, keywords ...string) Subscription {
		s.Keywords, s.Added, s.Removed = keywords, true, true
		return s
	}
	plain := Subscription{}
	for _, c := range []struct {
		name     string
		old, new Page
		sub      Subscription
		want     []string
	}{
		{"nothing", page("Zeus. In stock."), page("Zeus. In stock!"), both(plain, "Zeus", "stock"), nil},
		{"whole tokens", page("see a cat 100"), page("see a cats 1000"), both(plain, "cat", "cats", "100", "1000", "a"),
			[]string{"added 1000", "added cats", "removed 100", "removed cat"}},
		{"phrase through a kept word", page("Zeus is in stock"), page("Zeus is out of stock"), both(plain, "out of stock", "stock"),
			[]string{"added out of stock"}},
		{"case counts", page("one Zeus two"), page("one ZEUS two"), both(Subscription{MatchCase: true}, "ZEUS", "Zeus", "zeus"),
			[]string{"added ZEUS", "removed Zeus"}},
		{"case is ignored", page("one Zeus two"), page("one ZEUS two"), both(Subscription{}, "ZEUS"), nil},
		{"a moved block is none", page("argus sees all things", "two words here", "three words here"),
			page("two words here", "three words here", "argus sees all things"), both(plain, "argus"), nil},
		{"a moved block on demand", page("argus sees all things", "two words here", "three words here"),
			page("two words here", "three words here", "argus sees all things"), both(Subscription{Moved: true}, "argus", "two"),
			[]string{"added argus", "removed argus"}},
		{"an insertion above moves nothing", page("one argus", "two zeus"), page("new hera", "one argus", "two zeus"),
			both(Subscription{Moved: true}, "argus", "zeus", "hera"), []string{"added hera"}},
		{"one passage goes, another comes", page("old argus left his post at dawn"), page("nobody knows what argus wrote yesterday"),
			both(plain, "argus"), []string{"added argus", "removed argus"}},
		{"an edited block", page("argus sees all the things in town"), page("argus sees all the things in hamlets"),
			both(plain, "argus", "town"), []string{"removed town"}},
		{"a split block", page("one two three four argus five six seven"), page("one two three four", "argus five six seven"),
			both(plain, "argus", "four argus"), []string{"removed four argus"}},
		{"blocks that merge", page("one two three out", "of stock now here"), page("one two three out of stock now here"),
			both(plain, "out of stock"), []string{"added out of stock"}},
		{"moved and edited", page("alpha beta gamma delta argus", "one two three", "four five six"),
			page("one two three", "four five six", "alpha beta gamma delta zeus"), both(plain, "alpha", "argus", "zeus"),
			[]string{"added zeus", "removed argus"}},
		{"rows count as one block", page("*alpha|beta|gamma|delta", "*one|two|three"), page("*alpha|beta|argus|delta", "*one|two|three"),
			both(plain, "alpha", "gamma", "argus", "beta argus"), []string{"added argus", "removed gamma"}},
		{"terms", page("nothing at all"), page("nothing at all", "A god bought a big house"),
			both(Subscription{Terms: true, Stem: true, FilterStopwords: true}, "House of the Gods", "house zeus"),
			[]string{"added House of the Gods"}},
		{"terms in two differences", page("one a b c d e f g h two"), page("one god a b c d e f g h house two"),
			both(Subscription{Terms: true}, "house god", "god"), []string{"added god"}},
		{"terms of one merged difference", page("one a b c two"), page("one god a b c house two"),
			both(Subscription{Terms: true}, "house god", "house b"), []string{"added house b", "added house god"}},
		{"stop words are skipped", page("house zeus here"), page("house of the zeus here"),
			both(Subscription{FilterStopwords: true}, "house zeus"), nil},
		{"stop words only", page("one two three four"), page("one two The Who three four"),
			both(Subscription{FilterStopwords: true}, "The Who"), []string{"added The Who"}},
		{"marks", page("un cafe noir"), page("un café noir"), both(Subscription{IgnoreDiacritics: true}, "café"), nil},
		{"marks count", page("un cafe noir"), page("un café noir"), both(plain, "café", "cafe"),
			[]string{"added café", "removed cafe"}},
		{"overlapping occurrences", page("x a b a y"), page("x a b a b a y"), both(plain, "a b a"), []string{"added a b a"}},
		{"a change of two tokens, of which three are asked", page("a b c d e f g zeus argus"), page("a b c d e f g hera ares"),
			both(Subscription{Min: MinChange{Tokens: 3}}, "zeus", "ares"), nil},
		{"a change of two tokens, as asked", page("a b c d e f g zeus argus"), page("a b c d e f g hera ares"),
			both(Subscription{Min: MinChange{Tokens: 2}}, "zeus", "ares"), []string{"added ares", "removed zeus"}},
		{"a tenth of the longer text", page("a b c d e f g h i"), page("a b c d e f g h i zeus"),
			both(Subscription{Min: MinChange{Share: 1000}}, "zeus"), []string{"added zeus"}},
		{"less than a share", page("a b c d e f g h i"), page("a b c d e f g h i zeus"),
			both(Subscription{Min: MinChange{Share: 1001}}, "zeus"), nil},
		{"a moved block counts on demand", page("argus sees all things", "two words here", "three words here"),
			page("two words here", "three words here", "argus sees all things"), both(Subscription{Moved: true, Min: MinChange{Tokens: 4}}, "argus"),
			[]string{"added argus", "removed argus"}},
		{"every change", page("a b c", "d e"), page("a x c", "d e"), both(plain), []string{"added ", "removed "}},
		{"every change that only adds", page("a b c", "d e"), page("a b c x", "d e"), both(plain), []string{"added "}},
		{"every change of two blocks that merge", page("a b c", "d e"), page("a b c d e"), both(plain), nil},
		{"every change of a moved block", page("a b c", "d e"), page("d e", "a b c"), both(plain), nil},
		{"every change and move", page("a b c", "d e", "f g"), page("d e", "f g", "a b c"), both(Subscription{Moved: true}), []string{"added ", "removed "}},
		{"every change of other letters", page("a b c"), page("a B c"), both(plain), []string{"added ", "removed "}},
		{"every added text", page("a b c"), page("a x c"), Subscription{Added: true}, []string{"added "}},
		{"every change of three tokens", page("a b c"), page("a x c"), both(Subscription{Min: MinChange{Tokens: 3}}), nil},
		{"doubt", page("p q", "x y", "p q"), page("p q"), both(plain, "p"), []string{"maybe added p", "maybe removed p"}},
	} {
		if c.want == nil {
			c.want = []string{}
		}
		if got := claimStrings(Compare(c.old, c.new).Expect(c.sub, english)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	old, new := page("Zeus is in stock today."), page("Zeus is out of stock today.")
	e := Compare(old, new).Expect(Subscription{Keywords: []string{"out of stock", "in"}, Added: true, Removed: true}, nil)
	out := Report{Added, "out of stock", "out of stock", "Zeus is out of stock today.", 8, 0, "", ""}
	in := Report{Removed, "in", "in", "Zeus is in stock today.", 8, 0, "", ""}
	if err := e.Check([]Report{out, in}, 0, false); err != nil {
		t.Fatalf("right reports: %v", err)
	}
	change := func(r Report, f func(*Report)) Report { f(&r); return r }
	for name, rs := range map[string][]Report{
		"missed":          {out},
		"invented":        {out, in, {Added, "in", "stock", "stock", 15, 0, "", ""}},
		"twice":           {out, in, in},
		"wrong text":      {change(out, func(r *Report) { r.Text = "out of stack" }), in},
		"wrong offset":    {change(out, func(r *Report) { r.Offset = 9 }), in},
		"without keyword": {change(out, func(r *Report) { r.Text = "out of" }), in},
		"wrong snippet":   {change(out, func(r *Report) { r.Snippet = "Hera is out of stock today." }), in},
		"snippet without": {change(out, func(r *Report) { r.Snippet = "Zeus is" }), in},
		"wrong side":      {change(out, func(r *Report) { r.Event = Removed }), in},
	} {
		if err := e.Check(rs, 0, false); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, c := range map[string]struct {
		reports []Report
		omitted int
		full    bool
		want    bool
	}{
		"all in a large one":       {[]Report{out, in}, 0, true, true},
		"more than fit":            {[]Report{out}, 1, true, true},
		"left out, not counted":    {[]Report{out}, 0, true, false},
		"left out without need":    {[]Report{out}, 1, false, false},
		"nothing left out":         {[]Report{out, in}, 1, false, false},
		"counted below zero":       {[]Report{out, in}, -1, true, false},
		"fewer counted than known": {nil, 1, true, false},
	} {
		if err := e.Check(c.reports, c.omitted, c.full); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckEveryChange(t *testing.T) {
	old, new := page("ten to five today", "one two three four five and six"), page("ten past nine today", "one two three four five or six")
	e := Compare(old, new).Expect(Subscription{Added: true, Removed: true}, nil)
	right := []Report{
		{Removed, "", "to five", "ten to five today", 4, 1, "", ""}, {Added, "", "past nine", "ten past nine today", 4, 1, "", ""},
		{Removed, "", "and", "four five and six", 42, 2, "", ""}, {Added, "", "or", "four five or six", 44, 2, "", ""},
	}
	if err := e.Check(right, 0, false); err != nil {
		t.Fatalf("right reports: %v", err)
	}
	for name, f := range map[string]func(rs []Report) []Report{
		"an edit missed":     func(rs []Report) []Report { return rs[:2] },
		"a text missed":      func(rs []Report) []Report { return rs[:3] },
		"half of a text":     func(rs []Report) []Report { rs[0].Text = "to"; return rs },
		"a text that stayed": func(rs []Report) []Report { return append(rs, Report{Added, "", "six", "or six", 47, 3, "", ""}) },
		"an edit twice": func(rs []Report) []Report {
			return append(rs, Report{Removed, "", "and", "four five and six", 42, 3, "", ""}, Report{Added, "", "or", "four five or six", 44, 3, "", ""})
		},
		"no number":       func(rs []Report) []Report { rs[2].Edit, rs[3].Edit = 0, 0; return rs },
		"one number":      func(rs []Report) []Report { rs[2].Edit, rs[3].Edit = 1, 1; return rs },
		"the other order": func(rs []Report) []Report { rs[0], rs[1] = rs[1], rs[0]; return rs },
		"a keyword":       func(rs []Report) []Report { rs[0].Keyword = "five"; return rs },
	} {
		if err := e.Check(f(slices.Clone(right)), 0, false); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestNews(t *testing.T) {
	base := page("Zeus is here today", "*one|two", "three four five")
	for name, c := range map[string]struct {
		other Page
		want  bool
	}{
		"itself":        {base, false},
		"other marks":   {page("Zeus, is here today!", "*one|two.", "three four five"), false},
		"a split block": {page("Zeus is", "here today", "*one|two", "three four five"), false},
		"another case":  {page("zeus is here today", "*one|two", "three four five"), true},
		"a moved block": {page("*one|two", "three four five", "Zeus is here today"), true},
		"a word more":   {page("Zeus is here today", "*one|two|six", "three four five"), true},
		"a block less":  {page("Zeus is here today", "*one|two"), true},
	} {
		if got := Compare(base, c.other).News(); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestImportsNothingOfTheModule(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "github.com/") && !strings.HasSuffix(line, "/test/oracle") {
			t.Errorf("the oracle depends on %s", line)
		}
	}
}

// list makes a version of items of one list; the cells of one are separated by "|", and "key=" may stand before them.
func list(items ...string) Page {
	var p Page
	at := 0
	for i, it := range items {
		var k Key
		if id, cells, ok := strings.Cut(it, "="); ok {
			k, it = Key{List: 1, ID: uint32(id[0])}, cells
		}
		for cell := range strings.SplitSeq(it, "|") {
			p = append(p, Block{Text: cell, Offset: at, Items: []int{i + 1}, Keys: []Key{k}})
			at += len(cell) + 1
		}
	}
	return p
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new Page
		keywords []string
		want     []string
	}{
		{"one key, a third in common", list("a=alpha", "b=one two three four"), list("a=alpha", "b=one two five six seven eight"),
			[]string{"one", "three"}, []string{"removed three"}},
		{"other keys, three quarters in common", list("a=alpha", "b=one two three four"), list("a=alpha", "c=one two three five"),
			[]string{"one", "four"}, []string{"added one", "removed four", "removed one"}},
		{"the same without keys", list("alpha", "one two three four"), list("alpha", "one two three five"),
			[]string{"one", "four"}, []string{"removed four"}},
		{"keys that change at each fetch", list("a=alpha", "b=beta", "c=one two three four"), list("d=alpha", "e=beta", "f=one two three five"),
			[]string{"one", "four"}, []string{"removed four"}},
		{"a list of one", list("a=Release one two three four five six seven eight nine ten 1"), list("b=Release one two three four five six seven eight nine ten 2"),
			[]string{"release"}, []string{"added release", "removed release"}},
		{"a key that is new on equal words", list("a=alpha", "b=beta"), list("c=alpha", "d=beta"), []string{"alpha"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Compare(c.old, c.new).Expect(Subscription{Keywords: c.keywords, Added: true, Removed: true}, nil)
			if got := claimStrings(e); !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestRowsOfItems holds which items are units: one without a key that holds several with one is none.
func TestRowsOfItems(t *testing.T) {
	row := func(k Key) Page {
		inner := func(id uint32) Key { return Key{2, id} }
		return Page{
			{Text: "one", Items: []int{1, 2}, Keys: []Key{k, inner(1)}}, {Text: "two", Offset: 4, Items: []int{1, 3}, Keys: []Key{k, inner(2)}},
		}
	}
	if us := units(row(Key{})); len(us) != 2 || us[0].key != (Key{2, 1}) || us[1].key != (Key{2, 2}) {
		t.Errorf("a row of two items with keys: %+v", us)
	}
	if us := units(row(Key{1, 1})); len(us) != 1 || us[0].key != (Key{1, 1}) {
		t.Errorf("an item with a key that holds two: %+v", us)
	}
	only := Page{{Text: "one", Items: []int{1, 2}, Keys: []Key{{}, {2, 1}}}}
	if us := units(only); len(us) != 1 || us[0].key != (Key{2, 1}) {
		t.Errorf("an item around one with a key: %+v", us)
	}
	long := strings.Repeat("word ", 30)
	blocks := Page{{Text: long, Items: []int{1}, Keys: []Key{{1, 1}}}, {Text: long, Offset: 200, Items: []int{1}, Keys: []Key{{1, 1}}}}
	if us := units(blocks); len(us) != 2 || us[0].isItem || us[0].key != (Key{1, 1}) {
		t.Errorf("blocks of a longer item: %+v", us)
	}
}

func TestNames(t *testing.T) {
	p := list("3.|The third|more", "id: 3|title: lamp", "7|8", "plain: 5 words|x")
	for title, want := range map[string]bool{
		"The third": true, "The th…": true, "lamp": true, "title: lamp": false, "7": true, "x": true, "3.": false, "more": false, "id: 3": false, "8": false,
	} {
		if isTitle(p, title) != want {
			t.Errorf("%q is a title: %v, want %v", title, !want, want)
		}
	}
}
