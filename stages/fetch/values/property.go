package values

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/bojanz/currency"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// property returns a property of a node, whose name may be written in full, or with a capital letter.
func property(v map[string]any, name string) any {
	for _, prefix := range []string{"", "schema:", "http://schema.org/", "https://schema.org/"} {
		if x, ok := v[prefix+name]; ok {
			return x
		}
	}
	return v[strings.ToUpper(name[:1])+name[1:]]
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

// priceOf returns the price that a node itself has, by the first of keys that it has, and its currency.
func (w *offerFinder) priceOf(v map[string]any, keys []string) (o offer, err error) {
	o.currency = currencyOf(property(v, "priceCurrency"), w.page.tag)
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
			n, unit, unread := w.page.amountOf(text, isWritten, o.currency)
			if unread != nil {
				n = text
			}
			number, isNumber := pipeline.Amount(n).Number()
			before, wasNumber := pipeline.Amount(first).Number()
			switch {
			case first == "":
				first, o.price, o.written, o.err = n, text, isWritten, unread
				if o.err == nil {
					o.number, o.currency = n, unit
				}
			case n != first && (!isNumber || !wasNumber || number.Cmp(before) != 0):
				return offer{}, severalPrices(first, n)
			}
		}
		if first != "" {
			break
		}
	}
	return o, nil
}

// currencyOf returns the code of a currency that a page in the language tag declares, or "" if it is none that is in use.
func currencyOf(v any, tag string) string {
	text, _ := scalarText(v)
	if code := strings.ToUpper(localName(text)); currency.IsValid(code) {
		return code
	}
	return findSign(text, tag).code
}

// scalarText returns a text, or a number as it is written but without an exponent. Of a list it is the first one.
// isWritten says that people write it.
func scalarText(v any) (text string, isWritten bool) {
	switch v := v.(type) {
	case string:
		return blocks.Truncate(strings.TrimSpace(v), maxOfferText), false
	case written:
		return blocks.Truncate(string(v), maxOfferText), true
	case json.Number:
		if !strings.ContainsAny(v.String(), "eE") {
			return blocks.Truncate(v.String(), maxOfferText), false
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
				return blocks.Truncate(strings.TrimSpace(s), maxOfferText), false
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
