package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

// valueHistory returns the history of a document with the values, the oldest first, an hour apart.
func valueHistory(v pipeline.Value, values ...string) inspect.History {
	h := inspect.History{URL: pageURL, Document: "d1", View: pipeline.View{Value: &v}}
	for i, text := range values {
		h.Versions = append([]inspect.Version{{N: uint64(i + 1), Time: someTime.Add(time.Duration(i) * time.Hour), Value: text}}, h.Versions...)
	}
	return h
}

// TestCurve: the curve has a step for each value, in the order of time, and a line for each condition
// that is near the values.
func TestCurve(t *testing.T) {
	price := pipeline.Value{Offer: pipeline.OfferPrice}
	below := func(n pipeline.Amount, document string) inspect.Subscription {
		return inspect.Subscription{Document: document, Subscription: pipeline.Subscription{Condition: pipeline.Condition{Below: n}}}
	}
	c := drawCurve(valueHistory(price, "80.00 USD", "120.00 EUR", "70.00 EUR", "95.00 EUR"), []inspect.Subscription{below("100", "d1"), below("100", "d1"), below("90", "d2"), below("1", "d1")}, someTime.Add(5*time.Hour))
	if c == nil || c.High != "120.00 EUR" || c.Low != "70.00 EUR" || c.Other != 1 || c.Unit != "EUR" || !c.From.Equal(someTime.Add(time.Hour)) {
		t.Fatalf("got %+v", c)
	}
	if want := "M12.0 12.0H256.0V228.0H500.0V120.0H988"; c.Line != want || len(c.Dots) != 3 || c.Dots[1] != (dot{"M256.0 228.0h0", "70.00 EUR, 31 Jan 2026 17:04 UTC"}) {
		t.Errorf("got %s %+v, want %s", c.Line, c.Dots, want)
	}
	if len(c.Levels) != 1 || c.Levels[0] != (level{"M0 98.4H1000", "below 100"}) {
		t.Errorf("got %+v", c.Levels)
	}
	if !slices.Equal(c.Axis, []string{"120.00 EUR", "70.00 EUR"}) {
		t.Errorf("the axis has %q", c.Axis)
	}
	if c := drawCurve(valueHistory(price, "95.00 EUR", "120.00 EUR"), []inspect.Subscription{below("80.5", "d1")}, someTime); !slices.Equal(c.Axis, []string{"120.00 EUR", "80.5 EUR"}) {
		t.Errorf("with a condition below all values the axis has %q", c.Axis)
	}
	stock := drawCurve(valueHistory(pipeline.Value{Offer: pipeline.OfferAvailability}, "InStock", "", "OutOfStock", "PreOrder"), nil, someTime.Add(4*time.Hour))
	if want := "M12.0 12.0H500.0V120.0H744.0V228.0H988"; stock == nil || stock.Line != want || !slices.Equal(stock.Axis, []string{"InStock", "OutOfStock", "PreOrder"}) || stock.High != "" {
		t.Errorf("of words: got %+v, want %s", stock, want)
	}
	if c := drawCurve(valueHistory(price, "5.00", "5.0"), nil, someTime); c == nil || !strings.Contains(c.Line, "120.0") || strings.ContainsAny(c.Line, "NI") {
		t.Errorf("a value that stays: got %+v", c)
	}
	for name, h := range map[string]inspect.History{
		"one value": valueHistory(price, "5.00 EUR"), "no number": valueHistory(price, "", "x"), "one word": valueHistory(pipeline.Value{Word: true}, "a", "a"), "many words": valueHistory(pipeline.Value{Word: true}, "a", "b", "c", "d", "e", "f", "g"),
		"a text": {Versions: []inspect.Version{{N: 1}, {N: 2}}}, "not finite": valueHistory(price, strings.Repeat("9", 400), "NaN", "1"),
	} {
		if c := drawCurve(h, nil, someTime); c != nil {
			t.Errorf("%s: got %+v", name, c)
		}
	}
}

// TestValuesOfAPage: the page of a value shows its curve and all values as a table, and the list its
// current value, as text.
func TestValuesOfAPage(t *testing.T) {
	h := valueHistory(pipeline.Value{}, "1.00", "2.00 "+hostile)
	b := logIn(t, &fake{history: &h}, aToken)
	r, body := b.get(t, "/page?url="+pageURL)
	if r.StatusCode != http.StatusOK || strings.Contains(body, "<script>alert") || !strings.Contains(body, "All values as a table") || !strings.Contains(body, "<td class=\"number\"><bdi>1.00</bdi></td>") {
		t.Errorf("got %s", body)
	}
	h = valueHistory(pipeline.Value{Offer: pipeline.OfferPrice}, "1.00 EUR", "2.00 EUR")
	if _, body := b.get(t, "/page?url="+pageURL); !strings.Contains(body, `<path class="line" d="M12.0 228.0H`) || !strings.Contains(body, "at most <strong><bdi>2.00 EUR</bdi></strong>") {
		t.Errorf("got %s", body)
	}
	if _, body := b.get(t, "/"); !strings.Contains(body, `<bdi class="chip value">2.00 EUR</bdi>`) {
		t.Errorf("the list: got %s", body)
	}
}
