package match_test

import (
	"slices"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/match"
)

// TestValues: a subscription to a value is notified at the edges of its condition only.
func TestValues(t *testing.T) {
	price := pipeline.View{Value: &pipeline.Value{Offer: pipeline.OfferPrice}}
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
	} {
		var changes []flow.Change
		for i := range len(tt.values) - 1 {
			changes = append(changes, *compared(lines(tt.values[i]), lines(tt.values[i+1])))
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
