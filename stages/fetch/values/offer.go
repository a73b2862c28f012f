package values

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/internal/htmltree"
	"github.com/vokter/vokter/pipeline"
)

// offer is a schema.org Offer.
type offer struct {
	price, currency, availability string
	written                       bool   // the price is text for people, which may have a decimal comma
	number                        string // is the price with a decimal point
	err                           error  // why there is no number
	rank                          int    // how little it counts among others, see rankOfOffer
}

// Bounds of what is read of an offer.
const (
	maxOfferDepth = 50
	maxOfferNodes = 20_000
	maxOfferText  = 200
)

func attributeOf(n *html.Node, name string) string {
	value, _ := htmltree.Attribute(n, name)
	return value
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
	page      shownPage
	now       time.Time
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

// find looks for offers in v. isOne says that v itself is an offer, whatever its type.
func (w *offerFinder) find(v any, isOne bool, depth int) {
	if w.nodesLeft--; w.nodesLeft < 0 || depth > maxOfferDepth || w.found != nil && w.found.price != "" || w.err != nil {
		return
	}
	switch v := v.(type) {
	case []any:
		if isOne || !slices.ContainsFunc(v, func(x any) bool { n, ok := x.(map[string]any); return !ok || !isOffer(typeOf(n)) }) {
			w.choose(v, depth)
		}
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

// choose takes the offer of a list that counts most and has a price, if there is one.
func (w *offerFinder) choose(list []any, depth int) {
	var best *offer
	for _, n := range w.nodes(list) {
		if w.nodesLeft--; w.nodesLeft < 0 {
			break
		}
		o, err := w.read(n, depth)
		if err != nil && best == nil {
			return // find says so
		}
		if err == nil && o.price != "" && (best == nil || o.rank < best.rank) {
			best = &o
		}
	}
	if best != nil {
		w.found = best
	}
}

// rankOfOffer returns how little an offer counts: one whose price is long no more valid less than one that cannot be
// bought, and that less than others.
func (w *offerFinder) rankOfOffer(v map[string]any, availability string) (rank int) {
	until, _ := scalarText(property(v, "priceValidUntil"))
	if day, err := time.Parse(time.DateOnly, until[:min(len(until), len(time.DateOnly))]); err == nil && w.now.Sub(day) > 48*time.Hour {
		rank += 2
	}
	switch availability {
	case "OutOfStock", "SoldOut", "Discontinued":
		rank++
	}
	return rank
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
	if o, err = w.priceOf(v, keys); err != nil {
		return o, err
	}
	rival := "" // another price that counts as much
	for _, spec := range w.nodes(property(v, "priceSpecification")) {
		if hasType(spec, "DeliveryChargeSpecification") || hasType(spec, "PaymentChargeSpecification") {
			continue
		}
		other, err := w.priceOf(spec, []string{"price", "minPrice"})
		if err != nil {
			return o, err
		}
		rank := rankOf(spec)
		switch {
		case other.price == "":
		case o.price == "" || rank < best:
			best, rival = rank, ""
			o.price, o.written, o.number, o.err = other.price, other.written, other.number, other.err
			if other.currency != "" {
				o.currency = other.currency
			}
		case rank == best && rank == plainPrice && differs(other, o):
			rival = cmp.Or(rival, other.number, other.price)
		}
		o.currency = cmp.Or(o.currency, other.currency)
	}
	if rival != "" {
		return offer{}, severalPrices(cmp.Or(o.number, o.price), rival)
	}
	text, _ := scalarText(property(v, "availability"))
	o.availability = availabilityOf(text)
	o.rank = w.rankOfOffer(v, o.availability)
	if depth < maxOfferDepth && (o.price == "" || o.availability == "" || o.currency == "") {
		return o, w.fillFromOffers(&o, v, depth)
	}
	return o, nil
}

// differs reports whether two offers have different prices, and not in two currencies.
func differs(a, b offer) bool {
	if a.currency != "" && b.currency != "" && a.currency != b.currency {
		return false
	}
	x, y := cmp.Or(a.number, a.price), cmp.Or(b.number, b.price)
	return x != y && !sameAmount(x, y)
}

// severalPrices is the error of an offer with two prices of which none counts more.
func severalPrices(a, b string) error {
	return noValueError("the offer (schema.org) has several prices, " + a + " and " + b +
		", and does not say which one counts; read it with select")
}

// fillFromOffers takes what o does not say from the offers within it: of those that count most, the one with the lowest
// price.
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
		o.price, o.written, o.number, o.err = lowest.price, lowest.written, lowest.number, lowest.err
	}
	o.currency = cmp.Or(o.currency, lowest.currency)
	o.availability = cmp.Or(o.availability, lowest.availability)
	return nil
}

// less reports whether a counts more than b, or has a lower price, or b has none.
func less(a, b offer) bool {
	x, ok := pipeline.Amount(a.number).Number()
	y, ok2 := pipeline.Amount(b.number).Number()
	if ok && ok2 && a.rank != b.rank {
		return a.rank < b.rank
	}
	return ok && (!ok2 && b.price == "" || ok2 && x.Cmp(y) < 0)
}
