package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
	"golang.org/x/net/html"

	"github.com/vokter/vokter/internal/htmltree"
	"github.com/vokter/vokter/pipeline"
)

// offer is a schema.org Offer.
type offer struct {
	price, currency, availability string
	written                       bool // the price is text for people, which may have a decimal comma
}

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
	root, _, err := htmltree.Parse(ctx, raw.Body)
	switch {
	case ctx.Err() != nil:
		return offer{}, ctx.Err()
	case errors.Is(err, htmltree.ErrTooLarge):
		return offer{}, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: err.Error() + " to look for an offer"}
	case err != nil:
		return offer{}, noValueError("the page is nested too deeply to look for an offer (more than 512 elements)")
	}
	var values []any
	var broken error
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "script" && mediaTypeOf(attributeOf(n, "type")) == "application/ld+json" && n.FirstChild != nil {
			read, err := decodeJSONLD(n.FirstChild.Data)
			values = append(values, read...)
			if err != nil && broken == nil {
				broken = err
			}
		}
	}
	w := offerFinder{nodesLeft: maxOfferNodes}
	w.index(values, 0)
	w.nodesLeft = maxOfferNodes
	w.find(values, false, 0)
	if w.found == nil || w.found.price == "" && w.err == nil {
		m := microdata{root: root, nodesLeft: maxOfferNodes}
		for _, item := range m.offers(root, 0) {
			w.find(item, true, 0)
		}
	}
	switch {
	case w.found != nil && w.found.price != "":
		return *w.found, nil
	case w.err != nil:
		return offer{}, w.err
	case w.found != nil:
		return *w.found, nil
	case broken != nil:
		return offer{}, noValueError("the page declares no offer (schema.org) that can be read: its JSON-LD is broken (" + broken.Error() + ")")
	}
	return offer{}, noValueError("the page declares no offer (schema.org, as JSON-LD or microdata)")
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
		switch localName(t) {
		case "Offer", "AggregateOffer", "OfferForPurchase", "PriceSpecification", "UnitPriceSpecification", "CompoundPriceSpecification":
			return true
		}
	}
	return false
}

// localName returns the name of a term of schema.org, which may be written as an address, with or without a slash
// behind it.
func localName(term string) string {
	term = strings.TrimRight(term, "/#")
	if i := strings.LastIndex(term, "schema.org/"); i >= 0 {
		term = term[strings.LastIndexAny(term, "/#")+1:]
	}
	return strings.TrimPrefix(term, "schema:")
}

// offerFinder finds the first offer with a price in values of JSON-LD and microdata, or the first one without.
type offerFinder struct {
	found     *offer
	err       error // why the first offer with prices has none that is certain
	byID      map[string]map[string]any
	nodesLeft int // how many nodes are still read
}

// index finds what has an @id, by which other nodes may name it.
func (w *offerFinder) index(v any, depth int) {
	if w.nodesLeft--; w.nodesLeft < 0 || depth > maxOfferDepth {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			w.index(x, depth+1)
		}
	case map[string]any:
		if id, ok := v["@id"].(string); ok && len(v) > 1 && w.byID[id] == nil {
			if w.byID == nil {
				w.byID = make(map[string]map[string]any)
			}
			w.byID[id] = v
		}
		for _, x := range v {
			w.index(x, depth+1)
		}
	}
}

// nodes returns the values of a property that are nodes: one, or several in a list.
func (w *offerFinder) nodes(v any) (all []map[string]any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if n, ok := x.(map[string]any); ok {
				all = append(all, w.nodes(n)...)
			}
		}
	case map[string]any:
		if id, ok := v["@id"].(string); ok && len(v) == 1 && w.byID[id] != nil {
			v = w.byID[id]
		}
		all = append(all, v)
	}
	return all
}

// property returns a property of a node, whose name may be written in full, or with a capital letter.
func property(v map[string]any, name string) any {
	for _, prefix := range []string{"", "schema:", "http://schema.org/", "https://schema.org/"} {
		if x, ok := v[prefix+name]; ok {
			return x
		}
	}
	return v[strings.ToUpper(name[:1])+name[1:]]
}

// find looks for offers in v. isOne says that v itself is an offer, whatever its type.
func (w *offerFinder) find(v any, isOne bool, depth int) {
	if w.nodesLeft--; w.nodesLeft < 0 || depth > maxOfferDepth || w.found != nil && w.found.price != "" || w.err != nil {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			w.find(x, isOne, depth+1)
		}
	case map[string]any:
		if isOne || isOffer(typeOf(v)) {
			for _, n := range w.nodes(v) {
				o, err := w.read(n, depth)
				if w.err = err; err == nil && (w.found == nil || o.price != "") {
					w.found = &o
				}
			}
		}
		// The keys come in a fixed order: a map has none.
		for _, key := range []string{"@graph", "mainEntity", "itemOffered", "offers", "hasVariant", "model"} {
			if x := property(v, key); x != nil {
				w.find(x, key == "offers", depth+1)
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

// hasType reports whether a node is of a type of schema.org.
func hasType(v map[string]any, name string) bool {
	for t := range strings.FieldsSeq(typeOf(v)) {
		if localName(t) == name {
			return true
		}
	}
	return false
}

// Ranks of the prices of an offer: the lowest counts.
const (
	salePrice    = iota // a specification says that it is one
	offerPrice          // of the offer itself
	plainPrice          // of a specification without a type
	limitedPrice        // for members, by the unit, or for a number of them
	formerPrice         // a list price and its like
)

// rankOf returns which price a specification of an offer has.
func rankOf(spec map[string]any) int {
	kind, _ := scalarText(property(spec, "priceType"))
	switch localName(kind) {
	case "SalePrice":
		return salePrice
	case "", "ActivePrice":
	default:
		return formerPrice
	}
	for _, limit := range []string{"validForMemberTier", "membershipPointsEarned", "referenceQuantity", "unitCode", "unitText", "billingIncrement", "eligibleQuantity", "eligibleTransactionVolume"} {
		if property(spec, limit) != nil {
			return limitedPrice
		}
	}
	return plainPrice
}

// read returns the offer of a node. It is an error if the node has several prices and does not say which one counts.
func (w *offerFinder) read(v map[string]any, depth int) (o offer, err error) {
	keys := []string{"price", "lowPrice", "minPrice"}
	if hasType(v, "AggregateOffer") {
		keys = []string{"lowPrice", "price"}
	}
	best := rankOf(v)
	if best == plainPrice {
		best = offerPrice
	}
	if o, err = priceOf(v, keys); err != nil {
		return o, err
	}
	for _, spec := range w.nodes(property(v, "priceSpecification")) {
		if hasType(spec, "DeliveryChargeSpecification") || hasType(spec, "PaymentChargeSpecification") {
			continue
		}
		other, err := priceOf(spec, []string{"price", "minPrice"})
		if err != nil {
			return o, err
		}
		if rank := rankOf(spec); other.price != "" && (o.price == "" || rank < best) {
			best = rank
			o.price, o.written = other.price, other.written
			if other.currency != "" {
				o.currency = other.currency
			}
		}
		if o.currency == "" {
			o.currency = other.currency
		}
	}
	text, _ := scalarText(property(v, "availability"))
	o.availability = availabilityOf(text)
	if depth < maxOfferDepth && (o.price == "" || o.availability == "" || o.currency == "") {
		return o, w.fillFromOffers(&o, v, depth)
	}
	return o, nil
}

// fillFromOffers takes what o does not say from the offers within it: the one with the lowest price.
func (w *offerFinder) fillFromOffers(o *offer, v map[string]any, depth int) error {
	var lowest *offer
	for _, n := range w.nodes(property(v, "offers")) {
		if w.nodesLeft--; w.nodesLeft < 0 {
			break
		}
		other, err := w.read(n, depth+1)
		if err != nil {
			return err
		}
		if lowest == nil || less(other, *lowest) {
			lowest = &other
		}
	}
	if lowest == nil {
		return nil
	}
	if o.price == "" {
		o.price, o.written = lowest.price, lowest.written
	}
	if o.currency == "" {
		o.currency = lowest.currency
	}
	if o.availability == "" {
		o.availability = lowest.availability
	}
	return nil
}

// less reports whether a has a lower price than b, or b has none.
func less(a, b offer) bool {
	x, ok := pipeline.Amount(a.price).Number()
	y, ok2 := pipeline.Amount(b.price).Number()
	return ok && (!ok2 && b.price == "" || ok2 && x.Cmp(y) < 0)
}

// priceOf returns the price that a node itself has, by the first of keys that it has, and its currency.
func priceOf(v map[string]any, keys []string) (o offer, err error) {
	o.currency = currencyOf(property(v, "priceCurrency"))
	for _, key := range keys {
		list, ok := property(v, key).([]any)
		if !ok {
			list = []any{property(v, key)}
		}
		first := ""
		for _, x := range list {
			text, isWritten := scalarText(x)
			if text == "" {
				continue
			}
			n := text
			if isWritten || !pipeline.IsNumber(text) {
				if n, _, err = findNumber(text, "en", o.currency); err != nil {
					n = text
				}
			}
			number, isNumber := pipeline.Amount(n).Number()
			before, wasNumber := pipeline.Amount(first).Number()
			switch {
			case first == "":
				first, o.price, o.written = n, text, isWritten
			case n != first && (!isNumber || !wasNumber || number.Cmp(before) != 0):
				return offer{}, noValueError("the offer (schema.org) has several prices, " + first + " and " + n + ", and does not say which one counts; read it with select")
			}
		}
		if first != "" {
			break
		}
	}
	return o, nil
}

// currencyOf returns the code of a declared currency, or "" if it is none that is in use.
func currencyOf(v any) string {
	text, _ := scalarText(v)
	if code := strings.ToUpper(localName(text)); currency.IsValid(code) {
		return code
	}
	return findSign(text, "").code
}

// scalarText returns a text, or a number as it is written but without an exponent. Of a list it is the first one.
// isWritten says that people write it.
func scalarText(v any) (text string, isWritten bool) {
	switch v := v.(type) {
	case string:
		return truncate(strings.TrimSpace(v), maxOfferText), false
	case written:
		return truncate(string(v), maxOfferText), true
	case json.Number:
		if !strings.ContainsAny(v.String(), "eE") {
			return truncate(v.String(), maxOfferText), false
		}
		if x, err := v.Float64(); err == nil {
			return strconv.FormatFloat(x, 'f', -1, 64), false
		}
	case []any:
		for _, x := range v {
			if _, nested := x.([]any); nested {
				continue
			}
			if text, isWritten = scalarText(x); text != "" {
				return text, isWritten
			}
		}
	case map[string]any:
		for _, key := range []string{"@value", "@id", "name"} {
			if s, ok := v[key].(string); ok && s != "" {
				return truncate(strings.TrimSpace(s), maxOfferText), false
			}
			if n, ok := v[key].(json.Number); ok {
				return scalarText(n)
			}
		}
	}
	return "", false
}

// availabilities are those of schema.org, by their small letters.
var availabilities = map[string]string{
	"backorder": "BackOrder", "discontinued": "Discontinued", "instock": "InStock", "instoreonly": "InStoreOnly", "limitedavailability": "LimitedAvailability",
	"madetoorder": "MadeToOrder", "onlineonly": "OnlineOnly", "outofstock": "OutOfStock", "preorder": "PreOrder", "presale": "PreSale", "reserved": "Reserved",
	"soldout": "SoldOut",
}

// availabilityOf returns the name of an availability as schema.org writes it, or the text if it is none.
func availabilityOf(text string) string {
	name := localName(text)
	last := name[strings.LastIndexByte(name, '/')+1:]
	if known := availabilities[strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(last))]; known != "" {
		return known
	}
	return name
}
