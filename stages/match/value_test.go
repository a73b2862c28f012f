package match_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/match"
)

// TestValues: a subscription to a value is notified at the edges of its condition only.
func TestValues(t *testing.T) {
	price := pipeline.View{Value: &pipeline.Value{Offer: pipeline.OfferPrice}}
	number := pipeline.View{Select: []pipeline.Selector{{CSS: ".level"}}, Value: &pipeline.Value{}}
	word := pipeline.View{Select: []pipeline.Selector{{CSS: ".level"}}, Value: &pipeline.Value{Word: true}}
	stock := pipeline.View{Value: &pipeline.Value{Offer: pipeline.OfferAvailability}}
	for _, tt := range []struct {
		sub    pipeline.Subscription
		values []string
		want   []string
	}{
		{pipeline.Subscription{View: price, Condition: pipeline.Condition{Below: "100"}}, []string{"120.00 EUR", "95.00 EUR", "94.00 EUR", "101.00 EUR", "99.00 EUR"},
			[]string{"Price 120.00 -> 95.00 EUR (below 100)", "Price 101.00 -> 99.00 EUR (below 100)"}},
		{pipeline.Subscription{View: price}, []string{"1 EUR", "1.0 EUR", "2 EUR"}, []string{"Price 1.0 -> 2 EUR"}},
		{pipeline.Subscription{View: stock, Condition: pipeline.Condition{Becomes: "InStock"}}, []string{"OutOfStock", "InStock", "PreOrder", "InStock"},
			[]string{"Availability OutOfStock -> InStock (becomes InStock)", "Availability PreOrder -> InStock (becomes InStock)"}},
		// What is no word counts, too: a sign, a symbol.
		{pipeline.Subscription{View: number}, []string{"-5 °C", "5 °C", "5 °F", "5"}, []string{"Value -5 -> 5 °C", "Value 5 °C -> 5 °F", "Value 5 °F -> 5"}},
		{pipeline.Subscription{View: number, Condition: pipeline.Condition{Above: "0"}}, []string{"-0.5", "0.5"}, []string{"Value -0.5 -> 0.5 (above 0)"}},
		{pipeline.Subscription{View: word}, []string{"C", "C++", "★★", "★", "in stock", "in stock!", "In stock!"},
			[]string{"Value C -> C++", "Value C++ -> ★★", "Value ★★ -> ★", "Value ★ -> in stock", "Value in stock -> in stock!", "Value in stock! -> In stock!"}},
	} {
		var changes []flow.Change
		for i := range len(tt.values) - 1 {
			changes = append(changes, valueChange(t, tt.values[i], tt.values[i+1]))
		}
		var got []string
		for _, n := range match.Preview(changes, tt.sub, text.NewLanguages()) {
			got = append(got, n.Value.String())
			if len(n.Diffs) != 2 {
				t.Errorf("%s: got %d diffs, want 2", n.Value, len(n.Diffs))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v: got %q, want %q", tt.values, got, tt.want)
		}
	}
}

// valueChange returns the change of a document that is a value.
func valueChange(t *testing.T, old, new string) flow.Change {
	t.Helper()
	c, ok := diff.ChangeOf(flow.Snapshot{
		Page: "http://x/", N: 2, Previous: 1, Language: "en", Value: true, Old: lines(old), New: lines(new),
	})
	if !ok {
		t.Errorf("from %q to %q: got no change", old, new)
	}
	return c
}

// TestWhyNotValue: explain says what became of a value.
func TestWhyNotValue(t *testing.T) {
	price := pipeline.View{Value: &pipeline.Value{Offer: pipeline.OfferPrice}}
	for _, tt := range []struct {
		sub            pipeline.Subscription
		old, new, want string
	}{
		{pipeline.Subscription{View: price, Condition: pipeline.Condition{Below: "100"}}, "120 EUR", "95 EUR", ""},
		{pipeline.Subscription{View: price, Condition: pipeline.Condition{Below: "100"}}, "120 EUR", "110 EUR",
			"the value changed from 120 to 110 EUR, which meets no condition of the subscription"},
		{pipeline.Subscription{View: price}, "120 EUR", "120.00 EUR", "the value is the same number, written in another way"},
	} {
		c := valueChange(t, tt.old, tt.new)
		r := flow.Stamped{From: 1, Until: flow.Forever, Subscription: tt.sub}
		if got := match.NewExplainer(&c, lines(tt.old), lines(tt.new), text.NewLanguages()).WhyNot(r, ""); got != tt.want {
			t.Errorf("from %s to %s: got %q, want %q", tt.old, tt.new, got, tt.want)
		}
	}
}

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
