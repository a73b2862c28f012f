package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"slices"
	"strconv"
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

// findOffer returns the first offer with a price that the page declares as JSON-LD, or else as microdata. If
// none has a price, it returns the first one.
func findOffer(ctx context.Context, raw pipeline.Raw) (offer, error) {
	if mediaType, _, _ := mime.ParseMediaType(raw.ContentType); mediaType != "text/html" && mediaType != "application/xhtml+xml" {
		return offer{}, noValueError("only HTML declares offers, and the page is " + mediaType)
	}
	root, err := htmltree.Parse(ctx, raw.Body)
	switch {
	case ctx.Err() != nil:
		return offer{}, ctx.Err()
	case errors.Is(err, htmltree.ErrTooLarge):
		return offer{}, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: err.Error() + " to look for an offer"}
	case err != nil:
		return offer{}, noValueError("the page is nested too deeply to look for an offer (more than 512 elements)")
	}
	var inMicrodata offer
	w := offerFinder{nodesLeft: maxOfferNodes}
	item := (*html.Node)(nil) // the Offer in microdata
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" && mediaTypeOf(attributeOf(n, "type")) == "application/ld+json" && n.FirstChild != nil {
			var v any
			d := json.NewDecoder(strings.NewReader(n.FirstChild.Data))
			d.UseNumber()
			if d.Decode(&v) == nil {
				w.find(v, nil, 0)
			}
			if w.found.Price != "" {
				return w.found, nil
			}
		}
		if item == nil && isOffer(attributeOf(n, "itemtype")) {
			item = n
			inMicrodata = microdataOffer(n)
		}
	}
	switch {
	case inMicrodata.Price != "":
		return inMicrodata, nil
	case w.found != offer{}:
		return w.found, nil
	case item == nil:
		return offer{}, noValueError("the page declares no offer (schema.org, as JSON-LD or microdata)")
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

// offerFinder finds the first offer with a price in JSON-LD values, or the first one without.
type offerFinder struct {
	found     offer
	nodesLeft int // how many nodes are still read
}

// find looks into v, which is a part of the offer of, unless that is nil.
func (w *offerFinder) find(v any, of *offer, depth int) {
	if w.nodesLeft--; w.nodesLeft < 0 || depth > maxOfferDepth || w.found.Price != "" {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			w.find(x, of, depth+1)
		}
	case map[string]any:
		declared := isOffer(typeOf(v))
		whole := declared && of == nil
		if whole {
			of = &offer{}
		}
		if declared {
			of.fillFrom(v)
		}
		// The keys of an offer come first, in a fixed order: a map has none.
		for _, key := range []string{"@graph", "mainEntity", "itemOffered", "offers", "priceSpecification", "hasVariant", "model"} {
			if x, ok := v[key]; ok {
				w.find(x, of, depth+1)
			}
		}
		if whole && (of.Price != "" || w.found == offer{}) {
			w.found = *of
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

// fillFrom takes what o does not say yet from v.
func (o *offer) fillFrom(v map[string]any) {
	for _, f := range []struct {
		to   *string
		keys []string
	}{{&o.Price, []string{"price", "lowPrice"}}, {&o.Currency, []string{"priceCurrency"}}, {&o.Availability, []string{"availability"}}} {
		for _, key := range f.keys {
			if *f.to == "" {
				*f.to = scalarText(v[key])
			}
		}
	}
	*o = o.normalized()
}

// scalarText returns a text, or a number as it is written but without an exponent.
func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		return truncate(strings.TrimSpace(v), maxOfferText)
	case json.Number:
		if !strings.ContainsAny(v.String(), "eE") {
			return truncate(v.String(), maxOfferText)
		}
		if x, err := v.Float64(); err == nil {
			return strconv.FormatFloat(x, 'f', -1, 64)
		}
	case map[string]any:
		return scalarText(v["@value"])
	}
	return ""
}

// normalized removes the address of schema.org from the availability, and what is no code from the currency.
func (o offer) normalized() offer {
	o.Availability = strings.TrimPrefix(o.Availability[strings.LastIndexByte(o.Availability, '/')+1:], "schema:")
	o.Currency = strings.ToUpper(o.Currency)
	if _, err := currency.ParseISO(o.Currency); err != nil && !slices.Contains(newCurrencies, o.Currency) {
		o.Currency = ""
	}
	return o
}

// microdataOffer returns the offer in an element with itemtype.
func microdataOffer(item *html.Node) (o offer) {
	for n := range item.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		for name := range strings.FieldsSeq(attributeOf(n, "itemprop")) {
			to := map[string]*string{"price": &o.Price, "lowPrice": &o.Price, "priceCurrency": &o.Currency, "availability": &o.Availability}[name]
			if to != nil && *to == "" {
				*to = truncate(propertyValue(n), maxOfferText)
			}
		}
	}
	return o.normalized()
}

// propertyValue returns the value of a microdata property.
func propertyValue(n *html.Node) string {
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
