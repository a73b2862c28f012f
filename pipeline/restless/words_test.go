package restless

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// learnWordsOf shows the texts to a new table, one at each check, and returns for each check what was muted, as
// "old → new", and the table.
func learnWordsOf(texts []string) (muted []string, t Table) {
	for i := 1; i < len(texts); i++ {
		l := t.Learn(texts[i-1], texts[i], uint64(i), time.Minute)
		t.SaidWords()
		var all []string
		for _, e := range l.Words {
			all = append(all, texts[i-1][e[0]:e[1]]+" → "+texts[i][e[2]:e[3]])
		}
		muted = append(muted, strings.Join(all, "; "))
	}
	return muted, t
}

// rotating returns n texts with an advertisement of three, each made by page.
func rotating(n int, page func(i int, ad string) string) (texts []string) {
	for i := range n {
		texts = append(texts, page(i, []string{"Buy a lantern", "Win a voyage", "Sleep on wool"}[i%3]))
	}
	return texts
}

// TestRotatingWords: what rotates is muted after five changes in a row, whole blocks and words of a block, and what
// is news beside it is not.
func TestRotatingWords(t *testing.T) {
	names := strings.Fields("hera zeus argus")
	texts := rotating(20, func(i int, ad string) string {
		s := "News\n" + ad + "\nThe owl sees\nLast post by " + names[i%3] + " of the house\n"
		switch i {
		case 12:
			s = "News\n" + ad + "\nA block that came\nThe owl sees\nLast post by " + names[i%3] + " of the house\n"
		case 15:
			s = strings.Replace(s, "Last post", "First post", 1)
		case 17:
			s = strings.Replace(s, ad, "The house is sold", 1)
		}
		return s
	})
	muted, table := learnWordsOf(texts)
	for i, m := range muted {
		check := i + 1
		ad, name := strings.Contains(m, "Buy") || strings.Contains(m, "Win") || strings.Contains(m, "Sleep"), strings.Contains(m, "hera") || strings.Contains(m, "zeus")
		if check <= 6 && m != "" {
			t.Errorf("check %d: %q is muted at once", check, m)
		}
		if check == 17 && strings.Contains(m, "sold") {
			t.Errorf("check %d: %q is muted", check, m)
		}
		if (check == 8 || check == 11) && (!ad || !name) {
			t.Errorf("check %d: muted is %q, want both places", check, m)
		}
		for _, news := range []string{"came", "First"} {
			if strings.Contains(m, news) {
				t.Errorf("check %d: %q is muted", check, m)
			}
		}
	}
	var labels []string
	for _, p := range table.Turning(texts[19], 19) {
		labels = append(labels, p.Label)
	}
	if got := fmt.Sprintf("%q", labels); got != `["[Win a voyage]" "Last post by [zeus] of the house"]` {
		t.Errorf("the places are %s", got)
	}
}

// TestWordsThatAreTold: a list that grows, an amount of money and what toggles now and then are no place.
func TestWordsThatAreTold(t *testing.T) {
	list := ""
	for name, page := range map[string]func(i int, ad string) string{
		"list": func(i int, ad string) string {
			list = fmt.Sprintf("Item %c%c of it\n", 'a'+i%26, 'a'+i/26) + list
			return "News\n" + list + "All rights"
		},
		"money":  func(i int, ad string) string { return "News\n" + ad + " for 12.50 EUR\nAll rights" },
		"toggle": func(i int, _ string) string { return []string{"In stock", "Sold out"}[i/5%2] + "\nAll rights" },
	} {
		muted, table := learnWordsOf(rotating(60, page))
		if got := strings.Join(muted, ""); got != "" {
			t.Errorf("%s: muted is %q", name, got)
		}
		if got := table.Turning(rotating(1, page)[0], 59); len(got) > 0 {
			t.Errorf("%s: the places are %+v", name, got)
		}
	}
}

// TestMovedPlace: a place stays what it is where blocks come and go in front of it, and numbers beside it change.
func TestMovedPlace(t *testing.T) {
	muted, _ := learnWordsOf(rotating(20, func(i int, ad string) string {
		return strings.Repeat("A headline\n", 1+i/8) + fmt.Sprintf("Viewed %d times\n%s\nAll rights", 100+i, ad)
	}))
	if n := strings.Count(strings.Join(muted, "|"), "→"); n < 10 {
		t.Errorf("muted is %q", muted)
	}
}

// TestNumbers shows which numbers a block has, each with its kind.
func TestNumbers(t *testing.T) {
	for block, want := range map[string][]string{
		"By Hera · 1,604 views · 2 comments":                     {"#1,604", "#2"},
		"Mon 2 Nov 2026 08:31":                                   {"@Mon 2 Nov 2026 08:31"},
		"Montag, 2. November 2026 um 08:31 Uhr, 12 Gäste":        {"@Montag, 2. November 2026 um 08:31", "#12"},
		"Generated 2026-11-02 08:41:46":                          {"@2026-11-02 08:41:46"},
		"Nov 2, 2026 31 seats":                                   {"@Nov 2, 2026", "#31"},
		"Last checked 08:31:00 UTC · uptime 99.98 %":             {"@08:31:00", "#99.98"},
		"394 seats left · begins in 19 days 23 hours 30 minutes": {"#394", "@19 days 23 hours 30 minutes"},
		"Ends in 39h 30m":                                        {"@39h 30m"},
		"Ends in 59m":                                            {"@59m"},
		"an hour ago":                                            {"@an hour"},
		"vor einer Stunde":                                       {"@einer Stunde"},
		"vor 5 Minuten":                                          {"@5 Minuten"},
		"il y a 3 jours":                                         {"@3 jours"},
		"one day you will":                                       nil,
		"08:31 397 left":                                         {"@08:31", "#397"},
		"Now -6 °C, wind 8 km/h":                                 {"#-6", "#8"},
		"12 345 views":                                           {"#12 345"},
		"Price 19.90 EUR · 527 sold":                             {"$19.90", "#527"},
		"Price $ 19 today":                                       {"$19"},
		"€19,90 · 5 left":                                        {"$19,90", "#5"},
		"CHF 1'299":                                              {"$1'299"},
		"12 EUR 5 sold":                                          {"$12", "#5"},
		"1 234,56 €":                                             {"$1 234,56"},
		"101.12":                                                 {"$101.12"}, // as money is shown
		"csrf 1013ab99cc":                                        {"#1013ab99cc"},
		"id 550e8400-e29b-41d4-beef-446655440000":                {"#550e8400-e29b-41d4-beef-446655440000"},
		"12 May 2026 at 10:15 and 12,345 times":                  {"@12 May 2026 at 10:15", "#12,345"},
		"You may win 5 of 7":                                     {"#5", "#7"},
		"no number here":                                         nil,
		"٣ من ٥":                                                 {"#٣", "#٥"},
	} {
		b := NewText(block).At(0)
		var got []string
		for i, n := range b.numbers {
			got = append(got, string(n.kind)+b.value(i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", block, got, want)
		}
	}
}

// TestShapes: what differs only in numbers has the same shape, and nothing else has.
func TestShapes(t *testing.T) {
	shape := func(block string) uint64 { return NewText(block).At(len(block) - 1).Shape }
	for _, same := range [][2]string{
		{"9,999 views", "10,000 views"}, {"Sun 1 Nov 2026 23:59", "Mon 2 Nov 2026 00:00"}, {"1 day 2 hours", "23 hours"}, {"59 minutes ago", "an hour ago"},
		{"Ends in 1h 0m", "Ends in 59m"}, {"-1 °C", "1 °C"}, {"Views\n12", "Views\n13"},
	} {
		if shape(same[0]) != shape(same[1]) {
			t.Errorf("%q and %q have different shapes", same[0], same[1])
		}
	}
	for _, other := range [][2]string{
		{"524 sold", "sold out"}, {"5 ✔", "5 ✘"}, {"5 views", "5 likes"}, {"5 EUR", "5 views"}, {"Views\n12", "Likes\n12"}, {"12:30", "397"}, {"a 5", "a 5 6"},
		{"Views\n1\n12", "Views\n12"},
	} {
		if shape(other[0]) == shape(other[1]) {
			t.Errorf("%q and %q have the same shape", other[0], other[1])
		}
	}
}

// TestManyPlaces has a block of 60,000 numbers that all change. It would take long if each of them looked at all
// others.
func TestManyPlaces(t *testing.T) {
	text := func(first int) string {
		var b strings.Builder
		for i := range 60_000 {
			fmt.Fprintf(&b, "w%d ", first+i)
		}
		return b.String()
	}
	var table Table
	var l Lesson
	for check := range uint64(3) {
		l = table.Learn(text(int(check)*100_000), text(int(check+1)*100_000), check+1, time.Second)
	}
	if n := len(table.Entries); n > MaxPlaces {
		t.Errorf("the table has %d entries, want %d at most", n, MaxPlaces)
	}
	if l.Began.Count != MaxPlaces || l.Began.Whole {
		t.Errorf("%d places began to be restless, and nothing else changes: %v", l.Began.Count, l.Began.Whole)
	}
}
