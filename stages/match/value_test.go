package match_test

import (
	"slices"
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
