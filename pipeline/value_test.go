package pipeline

import (
	"strings"
	"testing"
)

// TestValueChange: a condition is met at its edge only.
func TestValueChange(t *testing.T) {
	for _, tt := range []struct {
		name   string
		c      Condition
		word   bool
		values []string
		want   []string // what is reported of each change
	}{
		{"below", Condition{Below: "100"}, false, []string{"120.00 EUR", "95.00 EUR", "94 EUR", "101 EUR", "99 EUR", "100 EUR"},
			[]string{"Value 120.00 -> 95.00 EUR (below 100)", "", "", "Value 101 -> 99 EUR (below 100)", ""}},
		{"above", Condition{Above: "0.1"}, false, []string{"0.1", "0.10", "0.11", "0.2"}, []string{"", "Value 0.10 -> 0.11 (above 0.1)", ""}},
		{"share", Condition{ChangesBy: "5%"}, false, []string{"100", "104.99", "110.2395", "100"},
			[]string{"", "Value 104.99 -> 110.2395 (changed by 5% or more)", "Value 110.2395 -> 100 (changed by 5% or more)"}},
		{"amount", Condition{ChangesBy: "0.1"}, false, []string{"0.2", "0.3", "0.39"}, []string{"Value 0.2 -> 0.3 (changed by 0.1 or more)", ""}},
		{"none", Condition{}, false, []string{"1.0", "1.00", "2", "2 EUR"}, []string{"", "Value 1.00 -> 2", "Value 2 -> 2 EUR"}},
		{"either", Condition{Below: "10", Above: "20"}, false, []string{"15", "9", "21"}, []string{"Value 15 -> 9 (below 10)", "Value 9 -> 21 (above 20)"}},
		{"word", Condition{Becomes: "instock"}, true, []string{"OutOfStock", "InStock", "PreOrder", "InStock"},
			[]string{"Value OutOfStock -> InStock (becomes instock)", "", "Value PreOrder -> InStock (becomes instock)"}},
	} {
		s := Subscription{View: View{Value: &Value{Word: tt.word}}, Condition: tt.c}
		for i, want := range tt.want {
			got := ""
			if c, ok := s.ValueChange(tt.values[i]+"\n", tt.values[i+1]+"\n"); ok {
				got = c.String()
			}
			if got != want {
				t.Errorf("%s: %s to %s: got %q, want %q", tt.name, tt.values[i], tt.values[i+1], got, want)
			}
		}
	}
}

// TestValuesThatAreRefused: a mistake names the field and what to do.
func TestValuesThatAreRefused(t *testing.T) {
	price := &Value{Offer: OfferPrice}
	for want, s := range map[string]Subscription{
		"below: it is a condition on a value":     {Condition: Condition{Below: "1"}},
		"below: \"x\" is not a number":            {View: View{Value: price}, Condition: Condition{Below: "x"}},
		"changes_by: must be more than 0":         {View: View{Value: price}, Condition: Condition{ChangesBy: "0%"}},
		"becomes: it compares words":              {View: View{Value: price}, Condition: Condition{Becomes: "x"}},
		"keywords: a subscription with value":     {View: View{Value: price}, Keywords: []string{"k"}},
		"value.pattern: \"a\" has 0 groups":       {View: View{Value: &Value{Pattern: "a"}}},
		"value.offer: \"cost\" is not known":      {View: View{Value: &Value{Offer: "cost"}}},
		"value: it does not say where":            {View: View{Value: &Value{}}},
		"below: it compares numbers, but the val": {View: View{Value: &Value{Offer: OfferAvailability}}, Condition: Condition{Below: "1"}},
	} {
		s.URL, s.Sinks = "https://example.com/", []string{"x"}
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
