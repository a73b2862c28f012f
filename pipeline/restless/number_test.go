package restless

import (
	"slices"
	"testing"
)

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
