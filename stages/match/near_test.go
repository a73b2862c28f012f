package match_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// row returns an item of cells.
func row(cells ...string) string { return "\x02" + strings.Join(cells, "\n") + "\n\x03" }

func TestNear(t *testing.T) {
	short := 6
	far := "Price" + strings.Repeat(" of the day", 40)
	for _, tt := range []struct {
		name     string
		sub      pipeline.Subscription
		old, new string
		want     []string
	}{
		{"a word that stays", pipeline.Subscription{Keywords: []string{"Price"}}, lines("Price: 10"), lines("Price: 9"), nil},
		{"in the paragraph", pipeline.Subscription{Keywords: []string{"Price"}, Near: "block"}, lines("Price: 10", "Rope 4"), lines("Price: 9", "Rope 5"), []string{
			`0 removed "10" in "Price: 10" at 7`, `0 added "9" in "Price: 9" at 7`}},
		{"behind the last word", pipeline.Subscription{Keywords: []string{"Price"}, Near: "block"}, lines("Price: 10"), lines("Price: 10 today"), []string{
			`0 added "today" in "Price: 10 today" at 10`}},
		{"in another cell, block", pipeline.Subscription{Keywords: []string{"Anvil"}, Near: "block"}, row("Anvil", "5 left", "$7"), row("Anvil", "6 left", "$7"), nil},
		{"in another cell", pipeline.Subscription{Keywords: []string{"Anvil"}, Near: "row"}, row("Anvil", "5 left", "$7") + row("Rope", "5 left", "$2"), row("Anvil", "6 left", "$7") + row("Rope", "4 left", "$2"), []string{
			`0 removed "5" in "Anvil · 5 left · $7" at 7 of Anvil`, `0 added "6" in "Anvil · 6 left · $7" at 7 of Anvil`}},
		{"one event", pipeline.Subscription{Keywords: []string{"Anvil"}, Near: "row", Events: []pipeline.Event{pipeline.Added}}, row("Anvil", "5 left"), row("Anvil", "6 left"), []string{
			`0 added "6" in "Anvil · 6 left" at 7 of Anvil`}},
		{"words in several cells", pipeline.Subscription{Keywords: []string{"left Anvil"}, Match: "terms", Near: "row"}, row("Anvil", "5 left", "$7"), row("Anvil", "5 left", "$8"), []string{
			`0 removed "7" in "Anvil · 5 left · $7" at 15 of Anvil`, `0 added "8" in "Anvil · 5 left · $8" at 15 of Anvil`}},
		{"far away in a long paragraph", pipeline.Subscription{Keywords: []string{"Price"}, Near: "block", SnippetOffset: &short}, lines(far + " is 10"), lines(far + " is 9"), []string{
			`0 removed "10" in "Price of the ... day is 10" at 449`, `0 added "9" in "Price of the ... day is 9" at 449`}},
		{"too far away", pipeline.Subscription{Keywords: []string{"Price"}, Near: "block"}, lines(strings.Repeat(far+" ", 20) + "word " + strings.Repeat("of the day ", 30) + "is 10"),
			lines(strings.Repeat(far+" ", 20) + "word " + strings.Repeat("of the day ", 30) + "is 9"), nil},
		{"a new row", pipeline.Subscription{Keywords: []string{"free"}}, row("10:00", "Hera", "taken"), row("10:00", "Hera", "taken") + row("14:00", "Argus", "free"), []string{
			`0 added "free" in "14:00 · Argus · free" at 32 of Argus`}},
		{"once for a new row", pipeline.Subscription{Keywords: []string{"Argus"}, Near: "row"}, row("10:00", "Hera"), row("10:00", "Hera") + row("14:00", "Argus", "free"), []string{
			`0 added "Argus" in "14:00 · Argus · free" at 20 of Argus`}},
		{"the keyword itself goes", pipeline.Subscription{Keywords: []string{"left"}, Near: "block"}, lines("5 left in store"), lines("none in store"), []string{
			`0 removed "5 left" in "5 left in store" at 0`}},
	} {
		if got, omitted := matchedDiffs(changeBetween(tt.old, tt.new), tt.sub); !slices.Equal(got, tt.want) || omitted != 0 {
			t.Errorf("%s: got\n%s\n%d omitted, want\n%s", tt.name, strings.Join(got, "\n"), omitted, strings.Join(tt.want, "\n"))
		}
	}
}
