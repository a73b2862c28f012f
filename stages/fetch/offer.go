package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/text/currency"

	"github.com/vokter/vokter/internal/htmltree"
	"github.com/vokter/vokter/pipeline"
)

// offer is a schema.org Offer.
type offer struct{ Price, Currency, Availability string }

// Bounds of what is read of an offer.
const (
	maxOfferDepth = 50
	maxOfferNodes = 20_000
	maxOfferText  = 200
)

// offerOf returns the first offer with a price that the page declares as JSON-LD, or else as microdata.
func offerOf(ctx context.Context, raw pipeline.Raw) (offer, error) {
	if mediaType, _, _ := mime.ParseMediaType(raw.ContentType); mediaType != "text/html" && mediaType != "application/xhtml+xml" {
		return offer{}, noValue("only HTML declares offers, and the page is " + mediaType)
	}
	root, err := htmltree.Parse(ctx, raw.Body)
	switch {
	case ctx.Err() != nil:
		return offer{}, ctx.Err()
	case errors.Is(err, htmltree.ErrTooLarge):
		return offer{}, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: err.Error() + " to look for an offer"}
	case err != nil:
		return offer{}, noValue("the page is nested too deeply to look for an offer (more than 512 elements)")
	}
	var inMicrodata offer
	item := (*html.Node)(nil) // the Offer in microdata
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" && mediaTypeOf(attributeOf(n, "type")) == "application/ld+json" && n.FirstChild != nil {
			w := walker{left: maxOfferNodes}
			var v any
			if json.Unmarshal([]byte(n.FirstChild.Data), &v) == nil {
				w.find(v, 0)
			}
			if w.found.Price != "" || w.found.Availability != "" {
				return w.found, nil
			}
		}
		if item == nil && isOffer(attributeOf(n, "itemtype")) {
			item = n
			inMicrodata = microdata(n)
		}
	}
	if item == nil {
		return offer{}, noValue("the page declares no offer (schema.org, as JSON-LD or microdata)")
	}
	return inMicrodata, nil
}

func mediaTypeOf(s string) string {
	mediaType, _, _ := mime.ParseMediaType(s)
	return mediaType
}

func attributeOf(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Namespace == "" && a.Key == name {
			return a.Val
		}
	}
	return ""
}

// isOffer reports whether a type of schema.org is an offer.
func isOffer(kind string) bool {
	for t := range strings.FieldsSeq(kind) {
		switch strings.TrimPrefix(t[strings.LastIndexByte(t, '/')+1:], "schema:") {
		case "Offer", "AggregateOffer", "PriceSpecification", "UnitPriceSpecification":
			return true
		}
	}
	return false
}

// walker finds the first offer in a JSON-LD value.
type walker struct {
	found offer
	left  int // how many nodes are still read
}

func (w *walker) find(v any, depth int) {
	if w.left--; w.left < 0 || depth > maxOfferDepth || w.found.Price != "" {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			w.find(x, depth+1)
		}
	case map[string]any:
		if isOffer(typeOf(v)) {
			w.take(v)
		}
		// The keys of an offer come first, in a fixed order: a map has none.
		for _, key := range []string{"@graph", "mainEntity", "itemOffered", "offers", "priceSpecification", "hasVariant", "model"} {
			if x, ok := v[key]; ok {
				w.find(x, depth+1)
			}
		}
	}
}

func typeOf(v map[string]any) string {
	switch t := v["@type"].(type) {
	case string:
		return t
	case []any:
		var all []string
		for _, x := range t {
			if s, ok := x.(string); ok {
				all = append(all, s)
			}
		}
		return strings.Join(all, " ")
	}
	return ""
}

// take takes what w has not found yet from v.
func (w *walker) take(v map[string]any) {
	for _, f := range []struct {
		to   *string
		keys []string
	}{{&w.found.Price, []string{"price", "lowPrice"}}, {&w.found.Currency, []string{"priceCurrency"}}, {&w.found.Availability, []string{"availability"}}} {
		for _, key := range f.keys {
			if *f.to == "" {
				*f.to = scalar(v[key])
			}
		}
	}
	w.found = w.found.tidy()
}

// scalar returns a text or a number as it is written.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return cut(strings.TrimSpace(v), maxOfferText)
	case float64:
		return fmt.Sprint(json.Number(strings.TrimSuffix(fmt.Sprintf("%.10g", v), ".0")))
	case map[string]any:
		return scalar(v["@value"])
	}
	return ""
}

// tidy removes the address of schema.org from the availability, and what is no code from the currency.
func (o offer) tidy() offer {
	o.Availability = strings.TrimPrefix(o.Availability[strings.LastIndexByte(o.Availability, '/')+1:], "schema:")
	if _, err := currency.ParseISO(o.Currency); err != nil {
		o.Currency = ""
	}
	o.Currency = strings.ToUpper(o.Currency)
	return o
}

// microdata returns the offer in an element with itemtype.
func microdata(item *html.Node) (o offer) {
	for n := range item.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		for name := range strings.FieldsSeq(attributeOf(n, "itemprop")) {
			to := map[string]*string{"price": &o.Price, "lowPrice": &o.Price, "priceCurrency": &o.Currency, "availability": &o.Availability}[name]
			if to != nil && *to == "" {
				*to = cut(property(n), maxOfferText)
			}
		}
	}
	return o.tidy()
}

// property returns the value of a microdata property.
func property(n *html.Node) string {
	for _, name := range []string{"content", "href", "value"} {
		if v := strings.TrimSpace(attributeOf(n, name)); v != "" {
			return v
		}
	}
	var b strings.Builder
	for x := range n.Descendants() {
		if x.Type == html.TextNode && b.Len() < maxOfferText {
			b.WriteString(x.Data)
		}
	}
	return strings.TrimSpace(b.String())
}
