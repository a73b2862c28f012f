package values

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/internal/htmltree"
	reader "github.com/vokter/vokter/stages/fetch/readers/html"
)

// written is the text of a property in microdata that a visitor reads. People write it, and no program.
type written string

// microdata reads items of microdata as values of the form that JSON-LD has.
type microdata struct {
	root      *html.Node
	byID      map[string]*html.Node // is made for the first itemref
	nodesLeft int
}

// offers adds the items within n that are offers and parts of no other offer to groups, in the order of the page. Those
// in one item, such as a product, are a group.
func (m *microdata) offers(groups []offerGroup, n, owner *html.Node, depth int) []offerGroup {
	if depth > maxTreeDepth {
		return groups
	}
	for c := range n.ChildNodes() {
		if c.Type != html.ElementNode || isOtherProduct(attributeOf(c, "itemprop")) {
			continue
		}
		_, isItem := htmltree.Attribute(c, "itemscope")
		if isOffer(attributeOf(c, "itemtype")) || isItem && slices.Contains(strings.Fields(attributeOf(c, "itemprop")), "offers") {
			if k := len(groups) - 1; owner != nil && k >= 0 && groups[k].owner == owner {
				groups[k].offers = append(groups[k].offers, m.item(c, 0))
			} else {
				groups = append(groups, offerGroup{owner, []any{m.item(c, 0)}})
			}
			continue
		}
		within := owner
		if isItem {
			within = c
		}
		groups = m.offers(groups, c, within, depth+1)
	}
	return groups
}

// offerGroup is the offers of one item.
type offerGroup struct {
	owner  *html.Node // nil if they are in none
	offers []any
}

// maxTreeDepth is how deep a parsed page can be, and more.
const maxTreeDepth = 1000

// isOtherProduct reports whether a property of a product leads to other things than its price.
func isOtherProduct(itemprop string) bool {
	for name := range strings.FieldsSeq(itemprop) {
		switch name {
		case "isRelatedTo", "isSimilarTo", "isAccessoryOrSparePartFor", "isConsumableFor", "addOn", "shippingDetails", "eligibleTransactionVolume", "review":
			return true
		}
	}
	return false
}

// item returns the item of an element. Its properties are those of the elements within and of those that itemref names,
// but not those of items within.
func (m *microdata) item(n *html.Node, depth int) map[string]any {
	item := map[string]any{"@type": attributeOf(n, "itemtype")}
	m.addProperties(item, n, depth)
	for id := range strings.FieldsSeq(attributeOf(n, "itemref")) {
		if m.byID == nil {
			m.byID = make(map[string]*html.Node)
			for e := range m.root.Descendants() {
				if id := attributeOf(e, "id"); id != "" && m.byID[id] == nil {
					m.byID[id] = e
				}
			}
		}
		if e := m.byID[id]; e != nil {
			m.addElement(item, e, depth)
		}
	}
	return item
}

func (m *microdata) addProperties(item map[string]any, n *html.Node, depth int) {
	for c := range n.ChildNodes() {
		m.addElement(item, c, depth)
	}
}

// addElement adds the properties that n declares, and those within it.
func (m *microdata) addElement(item map[string]any, n *html.Node, depth int) {
	if m.nodesLeft--; n.Type != html.ElementNode || m.nodesLeft < 0 || depth > maxTreeDepth {
		return
	}
	names := strings.Fields(attributeOf(n, "itemprop"))
	_, isItem := htmltree.Attribute(n, "itemscope")
	_, isTyped := htmltree.Attribute(n, "itemtype")
	isItem = isItem || isTyped
	for _, name := range names {
		var value any
		if isItem {
			value = m.item(n, depth+1)
		} else {
			value = propertyValue(n)
		}
		values, _ := item[name].([]any)
		item[name] = append(values, value)
	}
	if !isItem {
		m.addProperties(item, n, depth+1)
	}
}

// propertyValue returns the value of a microdata property that is no item. A struck price is marked as such.
func propertyValue(n *html.Node) any {
	for _, name := range []string{"content", "href", "value"} {
		if v := strings.TrimSpace(attributeOf(n, name)); v != "" {
			return struckOr(n, v)
		}
	}
	return struckOr(n, written(shownText(n)))
}

func shownText(n *html.Node) string {
	var b bytes.Buffer
	writeShown(&b, n, 0)
	return strings.TrimSpace(b.String())
}

// writeShown writes the text of n as a visitor reads it: without what is struck through, with a point before raised
// cents, and with reader.Split at others.
func writeShown(b *bytes.Buffer, n *html.Node, depth int) {
	for c := range n.ChildNodes() {
		switch {
		case b.Len() >= maxOfferText || depth > maxTreeDepth:
			return
		case c.Type == html.TextNode:
			if c.PrevSibling == nil || c.PrevSibling.Type == html.ElementNode {
				b.Write(reader.SplitCents(b.Bytes(), []byte(c.Data)))
			} else {
				b.WriteString(c.Data)
			}
			continue
		case c.Type != html.ElementNode || isStruck(c) || c.Data == "script" || c.Data == "style":
			continue
		case c.Data == "sup" || c.Data == "small":
			var raised bytes.Buffer
			writeShown(&raised, c, depth+1)
			b.WriteString(reader.RaisedMark(b.Bytes(), raised.Bytes()))
			b.Write(raised.Bytes())
			continue
		}
		writeShown(b, c, depth+1)
	}
}

// struckOr returns v, or nil if n is struck through: it was the price.
func struckOr[T string | written](n *html.Node, v T) any {
	for e := n; e != nil; e = e.Parent {
		if isStruck(e) {
			return nil
		}
	}
	return v
}

// isStruck reports whether what is in n is struck through.
func isStruck(n *html.Node) bool {
	return n.Data == "del" || n.Data == "s" || n.Data == "strike" || strings.Contains(attributeOf(n, "style"), "line-through")
}
