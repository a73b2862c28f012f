package values

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
		"list price": ld(`{"@type":"Offer","availability":"http://schema.org/InStock/","priceSpecification":[{"priceType":"https://schema.org/ListPrice","price":150,"priceCurrency":"EUR"},
			{"@type":"UnitPriceSpecification","price":"95.00","priceCurrency":"EUR"},{"price":1.9,"priceCurrency":"EUR","referenceQuantity":{"value":1}}]}`),
		"sale price": ld(`{"@type":"Offer","price":"150","priceCurrency":"EUR","availability":["instock"],"priceSpecification":[{"priceType":{"@id":"https://schema.org/SalePrice"},"price":"95.00"}]}`),
		"struck":     ld(`{"@type":"Offer","price":"95.00","priceCurrency":"EUR","availability":"In stock","priceSpecification":{"priceType":"https://schema.org/StrikethroughPrice","price":"150"}}`),
		"shipping":   ld(`{"@type":"Offer","shippingDetails":{"@type":"OfferShippingDetails","shippingRate":{"price":"4.90"}},"price":"95.00","priceCurrency":"€","availability":{"@id":"schema:InStock"}}`),
		"no type":    ld(`{"@type":"Product","offers":{"price":["95.00"],"priceCurrency":"EUR","availability":"InStock"}}`),
		"lowest":     ld(`{"@type":"Product","offers":{"@type":"AggregateOffer","offers":[{"price":"120","priceCurrency":"EUR","availability":"SoldOut"},{"price":"95.00","priceCurrency":"EUR","availability":"InStock"}]}}`),
		"reference":  ld(`{"@graph":[{"@type":"Product","offers":{"@id":"#o"}},{"@id":"#o","@type":"Offer","price":"95.00","priceCurrency":"EUR","availability":"InStock"}]}`),
		"variant":    ld(`{"@type":"ProductGroup","hasVariant":[{"@type":"Product","offers":{"price":"95.00","priceCurrency":"EUR","availability":"InStock"}}]}`),
		"dirty": ld("//<![CDATA[\n\ufeff<!-- /* one's \"own\" */ {\"@type\":\"Thing\"} {\"@type\":\"Offer\",\"name\":\"A 5\" lamp\nof Hera\t, it\\'s\",// the price\n" +
			`"price":"95.00",,"priceCurrency":"EUR","availability":["InStock",],};` + "\n//]]>"),
		"in one line": ld(`/*<![CDATA[*/ {"@type":"Offer","price":"95.00","priceCurrency":"EUR","availability":"InStock",} //]]>`),
		"nested item": `<div itemscope itemtype="http://schema.org/Offer"><p itemprop=shippingDetails itemscope itemtype="http://schema.org/OfferShippingDetails"><b itemprop=price>4.90</b></p>
			<del itemprop=price>150</del><b itemprop=price>95,00 €</b><link itemprop=availability href="http://schema.org/InStock"></div>`,
		"raised":  `<div itemscope itemtype="http://schema.org/Offer"><p itemprop=price><s>150</s> 95<sup>00</sup> €</p><link itemprop=availability href="InStock"></div>`,
		"capital": ld(`{"@type":"Product","Offers":{"@type":"AggregateOffer","LowPrice":95.00,"offers":[{"price":95.00,"priceCurrency":"EUR","Availability":"InStock"}]}}`),
		"itemref": `<div itemscope itemtype="http://schema.org/Offer" itemref="a b"></div><p id=a><b itemprop=price>95.00</b><i itemprop=priceCurrency content=EUR></i></p><p id=b itemprop=availability>in stock</p>`,
		"related": `<div itemprop=isRelatedTo itemscope><p itemprop=offers itemscope><b itemprop=price>5</b></p></div>
			<div itemscope><p itemprop=offers itemscope><b itemprop=price content="95.00"></b><i itemprop=priceCurrency content=EUR></i><i itemprop=availability content=InStock></i>`,
		"noscript":        `<noscript><p>No scripts</p></noscript><noscript>` + ld(`{"@type":"Offer","price":"95.00","priceCurrency":"EUR","availability":"InStock"}`) + `</noscript>`,
		"noscript within": `<div itemscope itemtype="http://schema.org/Offer"><noscript><div itemprop=price>95,00 €</div><link itemprop=availability href="http://schema.org/InStock"></noscript></div>`,
		"noscript before": `<noscript>` + ld(`{"@type":"Offer","price":"150"}`) + `</noscript>` + ld(`{"@type":"Offer","price":"95.00","priceCurrency":"EUR","availability":"InStock"}`),
	} {
		raw := pipeline.Raw{ContentType: "text/html; charset=utf-8", Body: []byte("<html><body>" + body)}
		price, err := extract(t, pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{Language: "de"}, false)
		stock, err2 := extract(t, pipeline.Value{Offer: pipeline.OfferAvailability}, raw, pipeline.Text{}, false)
		if got := strings.TrimSpace(price) + "/" + strings.TrimSpace(stock); got != want || err != nil || err2 != nil {
			t.Errorf("%s: got %q (%v, %v), want %q", name, got, err, err2, want)
		}
	}
}

// TestUndecidedOffers: a price that is not certain is a failed check that says so.
func TestUndecidedOffers(t *testing.T) {
	ld := func(json string) string { return `<script type="application/ld+json">` + json + `</script>` }
	for body, want := range map[string]string{
		ld(`{"@type":"Offer","price":["150.00","95.00"]}`): "several prices, 150.00 and 95.00",
		ld(`{"@type":"Offer","priceSpecification":[{"@type":"UnitPriceSpecification","price":80},` +
			`{"@type":"UnitPriceSpecification","price":"100"}]}`): "several prices, 80 and 100",
		ld(`{"@type":"Offer","priceSpecification":[{"price":5,"unitCode":"KGM"},{"price":80,"priceCurrency":"EUR"},` +
			`{"price":90}]}`): "several prices, 80 and 90",
		ld(`{"@type":"Offer","price":1,299.00}`): "its JSON-LD is broken",
		ld(`{"@type":"Offer","price":"95.0`):     "its JSON-LD is broken",
		`<p itemscope itemtype="http://schema.org/Offer"><b itemprop=price>150</b><b itemprop=price>95</b>`:      "several prices, 150 and 95",
		`<p itemscope itemtype="http://schema.org/Offer"><a itemprop=offers itemscope><b itemprop=x>150</b></a>`: "without price",
		`<p itemscope itemtype="http://schema.org/Offer"><b itemprop=price>1.299</b>`:                            "may be a thousand times as large",
		`<p itemscope itemtype="http://schema.org/Offer"><b itemprop=price><i>17</i><i>95</i></b>`:               "may be a hundred times as large",
		ld(`{"@type":"Offer","price":"1.299","priceCurrency":"EUR"}`):                                            "may be a thousand times as large",
		ld(`{"@type":"Offer","price":"1,299","priceCurrency":"EUR"}`) + `<p>1299`:                                "may be a thousand times as large",
		ld(`{"@type":"Offer","price":1.299,"priceCurrency":"EUR"}`) + `<p>1.299 €/t, 1,2990 €/kg`:                "may be a thousand times as large",
	} {
		raw := pipeline.Raw{ContentType: "text/html", Body: []byte(body)}
		if got, err := extract(t, pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{}, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v, want %s", body, got, err, want)
		}
	}
}

// TestWrittenPrice: what people write has the marks of their language, and what programs write has a decimal point.
func TestWrittenPrice(t *testing.T) {
	for body, want := range map[string]string{
		`<p itemscope itemtype="http://schema.org/Offer"><b itemprop=price>1.299</b><i itemprop=priceCurrency content=EUR></i>`:                          "1299 EUR",
		`<p itemscope itemtype="http://schema.org/Offer"><meta itemprop=price content="1.299"><b>1.299 €</b>`:                                            "1299 EUR",
		`<script type="application/ld+json">{"@type":"Offer","price":"1.299","priceCurrency":"EUR"}</script><p>4.5 of 5 <p>now € <b>1.299,00</b>`:        "1299 EUR",
		`<script type="application/ld+json">{"@type":"Offer","price":1.299,"priceCurrency":"EUR"}</script><p>No. 1299<p>1.299 € <s>1,299 €</s>`:          "1299 EUR",
		`<script type="application/ld+json">{"@type":"Offer","price":"1,299","priceCurrency":"EUR"}</script><p>1.299 €`:                                  "1299 EUR",
		`<script type="application/ld+json">{"@type":"Offer","price":"1.299","priceCurrency":"KWD"}</script>`:                                            "1.299 KWD",
		`<script type="application/ld+json">{"@type":"Offer","price":"1.299 €"}</script>`:                                                                "1299 EUR",
		`<p itemscope itemtype="http://schema.org/Offer"><b itemprop=price><i>17</i><i class=cents>95</i></b><i itemprop=priceCurrency content=EUR></i>`: "17.95 EUR",
		`<p itemscope itemtype="http://schema.org/Offer"><b itemprop=price>€<i>1.299</i><sub>95</sub></b>`:                                               "1299.95 EUR",
		`<p itemscope itemtype="http://schema.org/Offer"><b itemprop=price>1<i>299</i> €</b>`:                                                            "1299 EUR",
		`<p itemscope itemtype="http://schema.org/Offer"><b itemprop=price content="1.299">nur 1.299 €</b><i itemprop=priceCurrency content=EUR></i>`:    "1299 EUR",
		`<p itemscope itemtype="http://schema.org/Offer"><b itemprop=price content="1.299">1,299 €</b><i itemprop=priceCurrency content=EUR></i>`:        "1.299 EUR",
	} {
		raw := pipeline.Raw{ContentType: "text/html", Body: []byte(body)}
		if got, err := extract(t, pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{}, false); strings.TrimSpace(got) != want {
			t.Errorf("%s: got %q, %v, want %s", body, got, err, want)
		}
	}
	raw := pipeline.Raw{ContentType: "application/json"}
	if got, err := extract(t, pipeline.Value{}, raw, pipeline.Text{Content: "1.085\n"}, true); got != "1.085\n" {
		t.Errorf("JSON: got %q, %v", got, err)
	}
}

// TestBestOffer: of the offers of a product, one that holds and can be bought counts first.
func TestBestOffer(t *testing.T) {
	ld := func(json string) string { return `<script type="application/ld+json">` + json + `</script>` }
	spec := func(list string) string { return ld(`{"@type":"Offer","priceSpecification":[` + list + `]}`) }
	item := func(price, stock string) string {
		return `<div itemprop=offers itemscope itemtype="http://schema.org/Offer"><b itemprop=price content="` + price + `"></b><link itemprop=availability href="` + stock + `"></div>`
	}
	for body, want := range map[string]string{
		spec(`{"price":7},{"price":"7.00"}`):                                                "7",
		spec(`{"price":80},{"price":100},{"price":7,"priceType":"SalePrice"}`):              "7",
		spec(`{"price":7,"priceCurrency":"EUR"},{"price":8,"priceCurrency":"USD"}`):         "7 EUR",
		ld(`{"@type":"Offer","price":7,"priceSpecification":[{"price":80},{"price":100}]}`): "7",

		ld(`{"@type":"Product","offers":[{"price":5,"priceValidUntil":"2001-01-01"},{"price":7,"priceValidUntil":"2999-01-01T00:00:00Z"}]}`):          "7",
		ld(`{"@type":"Product","offers":[{"price":5,"availability":"OutOfStock"},{"price":7,"availability":"InStock"}]}`):                             "7",
		ld(`{"@type":"Product","offers":[{"price":5,"availability":"SoldOut","priceValidUntil":"2001-01-01"},{"price":7,"availability":"SoldOut"}]}`): "7",
		ld(`{"@type":"Product","offers":[{"price":5,"priceValidUntil":"2001-01-01"}]}`):                                                               "5",
		ld(`{"@type":"Product","offers":[{"price":5},{"price":3,"availability":"InStock"}]}`):                                                         "5",
		ld(`{"@type":"AggregateOffer","offers":[{"price":5,"availability":"SoldOut"},{"price":8},{"price":7,"availability":"InStock"}]}`):             "7",
		ld(`[{"@type":"Product","offers":{"price":5,"availability":"SoldOut"}},{"@type":"Product","offers":{"price":7,"availability":"InStock"}}]`):   "5", // another product
		`<div itemscope itemtype="http://schema.org/Product">` + item("5", "SoldOut") + item("7", "InStock") + `</div>`:                               "7",
		`<div itemscope>` + item("5", "SoldOut") + `</div><div itemscope>` + item("7", "InStock") + `</div>`:                                          "5",
		ld(`{"@type":"Product","weight":NaN,"offers":{"price":7.}}`):                                                                                  "7",
		ld(`window.product = {"@type":"Product","offers":{"price":7}};`):                                                                              "7",
	} {
		raw := pipeline.Raw{ContentType: "text/html", Body: []byte(body)}
		if got, err := extract(t, pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{}, false); strings.TrimSpace(got) != want {
			t.Errorf("%s: got %q, %v, want %s", body, got, err, want)
		}
	}
}

// TestNewCurrency: a currency of 2025, and a code that is none.
func TestNewCurrency(t *testing.T) {
	for code, want := range map[string]string{"xcg": "95.00 XCG", "ZZZ": "95.00"} {
		raw := pipeline.Raw{ContentType: "text/html", Body: []byte(`<script type="application/ld+json">{"@type":"Offer","price":"95.00","priceCurrency":"` + code + `"}</script>`)}
		if got, err := extract(t, pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{}, false); strings.TrimSpace(got) != want || err != nil {
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
		got, err := extract(t, pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{Language: "vi"}, false)
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
		_, err := extract(t, pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{}, false)
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
		got, err := extract(t, tt.v, pipeline.Raw{}, pipeline.Text{Content: tt.text, Language: "de"}, false)
		if got != tt.want || err != nil {
			t.Errorf("%+v: got %q, %v, want %q", tt.v, got, err, tt.want)
		}
	}
}

// TestUnknownCurrency: a sign that the language of the page does not decide is said.
func TestUnknownCurrency(t *testing.T) {
	for _, tt := range []struct{ text, tag, want string }{
		{"Rs 1299", "en-LK", ""},
		{"1299", "en", ""},
		{"Rs 1299", "en", `"Rs" is the sign of several, and the language en names none`},
		{"120 DH", "", `"DH" is the sign of several, and the page has no language`},
		{"Q$ 120", "en", `nobody knows whose "Q$" is`},
	} {
		got, err := Extract(t.Context(), pipeline.Value{}, pipeline.Raw{}, pipeline.Text{Content: tt.text, Language: tt.tag}, false)
		if said := strings.Join(got.Passed, "\n"); err != nil || (said == "") != (tt.want == "") || !strings.Contains(said, tt.want) {
			t.Errorf("%q in %q: passed over %q, %v, want %q", tt.text, tt.tag, said, err, tt.want)
		}
	}
}

// TestLanguageOfAValue: the language of the subscription says how a number is written, before that of the page.
func TestLanguageOfAValue(t *testing.T) {
	for tag, want := range map[string]string{"": "1.299\n", "de": "1299\n"} {
		s := pipeline.Subscription{Language: tag, View: pipeline.View{Value: &pipeline.Value{}}}.WithDefaults()
		got, err := extract(t, *s.Value, pipeline.Raw{}, pipeline.Text{Content: "1.299", Language: "en"}, false)
		if got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", tag, got, err, want)
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
	for _, body := range []string{page.String(), "<noscript><b itemprop=a>" + page.String() + "</noscript>"} {
		raw := pipeline.Raw{ContentType: "text/html", Body: []byte(body)}
		_, err := extract(t, pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{}, false)
		if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Class != pipeline.FailTooLarge {
			t.Errorf("got %v, want the class %s", err, pipeline.FailTooLarge)
		}
	}
}

// extract returns what Extract makes of a page, "" with an error.
func extract(t *testing.T, v pipeline.Value, raw pipeline.Raw, text pipeline.Text, byProgram bool) (string, error) {
	t.Helper()
	got, err := Extract(t.Context(), v, raw, text, byProgram)
	if err != nil {
		return "", err
	}
	return got.Content, nil
}
