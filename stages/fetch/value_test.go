package fetch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// TestOffer: an offer is found in the forms in which shops declare it.
func TestOffer(t *testing.T) {
	ld := func(json string) string { return `<script type="application/ld+json">` + json + `</script>` }
	const want = "95.00 EUR/InStock"
	for name, body := range map[string]string{
		"product":   ld(`{"@type":"Product","name":"x","offers":{"@type":"Offer","price":"95.00","priceCurrency":"EUR","availability":"https://schema.org/InStock"}}`),
		"graph":     ld(`{"@graph":[{"@type":"WebSite"},{"@type":["Product","Thing"],"offers":[{"@type":"http://schema.org/Offer","price":"95.00","priceCurrency":"eur","availability":"InStock"}]}]}`),
		"aggregate": ld(`[{"@type":"Product","offers":{"@type":"AggregateOffer","lowPrice":"95.00","highPrice":"99.00","priceCurrency":"EUR","availability":"schema:InStock"}}]`),
		"spec":      ld(`{"@type":"Offer","availability":"https://schema.org/InStock","priceSpecification":{"@type":"PriceSpecification","price":"95.00","priceCurrency":"EUR"}}`),
		"second":    ld(`{broken`) + ld(`{"@type":"Offer","price":"95.00","priceCurrency":"EUR","availability":"InStock"}`),
		"number":    ld(`{"@type":"Offer","price":95.00,"priceCurrency":"EUR","availability":"InStock"}`),
		"two":       ld(`[{"@type":"Offer","availability":"SoldOut"},{"@type":"Offer","price":"95.00","priceCurrency":"EUR","availability":"InStock"}]`),
		"empty": ld(`{"@type":"Offer","price":"","availability":"SoldOut"}`) +
			`<p itemscope itemtype="https://schema.org/Offer"><meta itemprop=price content="95.00"><meta itemprop=priceCurrency content=EUR><meta itemprop=availability content=InStock>`,
		"microdata": `<div itemscope itemtype="https://schema.org/Product"><div itemprop="offers" itemscope itemtype="https://schema.org/Offer">
			<span itemprop="price" content="95.00">€95</span><meta itemprop="priceCurrency" content="EUR"><link itemprop="availability" href="https://schema.org/InStock"></div></div>`,
	} {
		raw := pipeline.Raw{ContentType: "text/html; charset=utf-8", Body: []byte("<html><body>" + body)}
		price, err := extractValue(t.Context(), pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{})
		stock, err2 := extractValue(t.Context(), pipeline.Value{Offer: pipeline.OfferAvailability}, raw, pipeline.Text{})
		if got := strings.TrimSpace(price) + "/" + strings.TrimSpace(stock); got != want || err != nil || err2 != nil {
			t.Errorf("%s: got %q (%v, %v), want %q", name, got, err, err2, want)
		}
	}
}

// TestNewCurrency: golang.org/x/text does not have it yet.
func TestNewCurrency(t *testing.T) {
	for code, want := range map[string]string{"xcg": "95.00 XCG", "ZZZ": "95.00"} {
		raw := pipeline.Raw{ContentType: "text/html", Body: []byte(`<script type="application/ld+json">{"@type":"Offer","price":"95.00","priceCurrency":"` + code + `"}</script>`)}
		if got, err := extractValue(t.Context(), pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{}); strings.TrimSpace(got) != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", code, got, err, want)
		}
	}
}

// TestPriceAsNumber: JSON has numbers in forms that a shop does not show.
func TestPriceAsNumber(t *testing.T) {
	for price, want := range map[string]string{
		"12500000000": "12500000000", "12500000001": "12500000001", "1234567890.55": "1234567890.55", "0.00001234": "0.00001234",
		"1.25e10": "12500000000", "1e-5": "0.00001", "99.90": "99.90", `".99"`: "0.99", "1e400": "", "1e300": "",
	} {
		raw := pipeline.Raw{ContentType: "text/html", Body: []byte(`<script type="application/ld+json">{"@type":"Offer","price":` + price + `}</script>`)}
		got, err := extractValue(t.Context(), pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{Language: "vi"})
		if got = strings.TrimSpace(got); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", price, got, err, want)
		}
	}
}

// TestHostileOffers: what is no offer costs little and is a failed check.
func TestHostileOffers(t *testing.T) {
	for name, body := range map[string]string{
		"none":    "<p>95 EUR",
		"deep":    `<script type="application/ld+json">` + strings.Repeat(`{"@graph":[`, 100_000) + `</script>`,
		"nested":  `<script type="application/ld+json">` + strings.Repeat(`{"@graph":[`, 4000) + strings.Repeat(`]}`, 4000) + `</script>`,
		"wide":    `<script type="application/ld+json">[` + strings.Repeat(`{"@graph":[]},`, 100_000) + `1]</script>`,
		"types":   `<script type="application/ld+json">{"@type":{"@type":1},"offers":[1,"x",null,{"@type":"Offer","price":{"a":[]}}]}</script>`,
		"divs":    strings.Repeat("<div itemscope itemtype=x>", 20_000),
		"no text": `<div itemscope itemtype="https://schema.org/Offer"></div>`,
	} {
		raw := pipeline.Raw{ContentType: "text/html", Body: []byte(body)}
		_, err := extractValue(t.Context(), pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{})
		if f, ok := errors.AsType[*pipeline.FetchError](err); !ok || f.Class != pipeline.FailSelectorGone {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestValueOf: a pattern and words.
func TestValueOf(t *testing.T) {
	for _, tt := range []struct {
		v          pipeline.Value
		text, want string
	}{
		{pipeline.Value{}, "now 1.299,00 €", "1299.00 EUR\n"},
		{pipeline.Value{Pattern: `only (\S+) left`}, "10 EUR, only 3 left", "3\n"},
		{pipeline.Value{Word: true}, " In \n stock\x1b[31m ", "In stock[31m\n"},
	} {
		got, err := extractValue(t.Context(), tt.v, pipeline.Raw{}, pipeline.Text{Content: tt.text, Language: "de"})
		if got != tt.want || err != nil {
			t.Errorf("%+v: got %q, %v, want %q", tt.v, got, err, tt.want)
		}
	}
}

// TestOfferOfABomb: a small page whose tree would take all memory is refused before it is parsed.
func TestOfferOfABomb(t *testing.T) {
	var page strings.Builder
	page.WriteString("<p>")
	for i := range 400 {
		fmt.Fprintf(&page, "<font a=%d>", i)
	}
	page.WriteString(strings.Repeat("<p>x", 2000))
	raw := pipeline.Raw{ContentType: "text/html", Body: []byte(page.String())}
	_, err := extractValue(t.Context(), pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{})
	if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Class != pipeline.FailTooLarge {
		t.Errorf("got %v, want the class %s", err, pipeline.FailTooLarge)
	}
}
