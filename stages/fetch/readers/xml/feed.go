package xml

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// isFeed reports whether root is that of an RSS or Atom feed. Product lists have such names, too: a feed says so
// by Atom's namespace, or has items as feeds have them.
func isFeed(root *html.Node) bool {
	switch root.Data {
	case "rss":
		return true
	case "rdf": // RSS 1.0
		return childNamed(root, "channel") != nil && (childNamed(root, "item") != nil || slices.ContainsFunc(root.Attr, isRDF)) ||
			slices.ContainsFunc(root.Attr, isRDF) && !hasElement(root)
	case "feed":
		return slices.ContainsFunc(root.Attr, isAtom) || hasFeedItem(root, "entry")
	case "channel":
		return hasFeedItem(root, "item")
	}
	return false
}

// isAtom reports whether a declares the namespace of Atom 1.0 or 0.3.
func isAtom(a html.Attribute) bool {
	return strings.HasPrefix(a.Key, "xmlns") && (strings.Contains(a.Val, "w3.org/2005/Atom") || strings.Contains(a.Val, "purl.org/atom/"))
}

// isRDF reports whether a declares the namespace of RSS 1.0 or 0.90.
func isRDF(a html.Attribute) bool {
	return strings.HasPrefix(a.Key, "xmlns") && (strings.Contains(a.Val, "purl.org/rss/1.0") || strings.Contains(a.Val, "netscape.com/rdf/simple/0.9"))
}

// hasElement reports whether an element is in n.
func hasElement(n *html.Node) bool {
	for c := range n.ChildNodes() {
		if c.Type == html.ElementNode {
			return true
		}
	}
	return false
}

// hasFeedItem reports whether the first element of this name within root is an item of a feed.
func hasFeedItem(root *html.Node, name string) bool {
	item := childNamed(root, name)
	return childNamed(item, "title") != nil || childNamed(item, "link") != nil || childNamed(item, "description") != nil
}

// dropCut drops the item of a feed within which the page ends, in the element open. It reports whether there is one.
func dropCut(open *html.Node) bool {
	for n := open; n != nil; n = n.Parent {
		if n.Data == "item" || n.Data == "entry" {
			n.Parent.RemoveChild(n)
			return true
		}
	}
	return false
}

// What an element of an item says.
const (
	noRole = iota
	titleRole
	linkRole
	textRole
	subtitleRole // it counts where there is no text
	offerRole    // it counts always
	roles
)

// roleOf returns what n, an element of a feed or of one of its extensions such as Dublin Core, Media RSS,
// iTunes and Google's product feeds, says of its item.
func roleOf(n *html.Node) int {
	switch n.Data {
	case "title":
		return titleRole
	case "link":
		return linkRole
	case "description", "summary", "content", "encoded", "body", "fullitem", "abstract":
		return textRole
	case "subtitle":
		return subtitleRole
	case "price", "sale_price", "availability", "availability_date", "condition", "brand", "stock", "quantity", "inventory", "color", "size", "material":
		return offerRole
	}
	return noRole
}

// isFullText reports whether n has the whole text of an item of RSS, by an extension: content:encoded, xhtml:body, or
// fullitem of older feeds.
func isFullText(n *html.Node) bool {
	return n.Data == "encoded" || n.Data == "body" || n.Data == "fullitem"
}

// countExtensions notes which elements within holder, an item or the head of a feed, count though they belong to
// an extension: those that say what no element of the feed itself says, and what shops say of their offers.
func (w *writer) countExtensions(holder *html.Node, prefix string) {
	isPlain := func(c *html.Node) bool {
		return c.Type != html.ElementNode || prefixOf(c) == prefix && roleOf(c) != offerRole
	}
	odd := holder.FirstChild
	for odd != nil && isPlain(odd) {
		odd = odd.NextSibling
	}
	if odd == nil {
		return
	}
	var said [roles]bool
	for c := range holder.ChildNodes() {
		if c.Type == html.ElementNode && (prefixOf(c) == prefix || isFullText(c)) {
			r := roleOf(c)
			said[r] = said[r] || hasText(c) || r == linkRole && attribute(c, "href") != ""
		}
	}
	if w.counted == nil {
		w.counted = make(map[*html.Node]bool)
	}
	var subtitle *html.Node
	var look func(n *html.Node)
	look = func(n *html.Node) {
		for c := range n.ChildNodes() {
			if c.Type != html.ElementNode || w.isItem(c, siblings{}, "") {
				continue
			}
			if prefixOf(c) == prefix {
				if roleOf(c) == offerRole {
					w.counted[c] = true
				}
				continue
			}
			r := roleOf(c)
			switch {
			case r == noRole || childNamed(c, "") != nil:
				look(c)
			case !hasText(c) || said[r] && r != offerRole:
			case r == subtitleRole:
				subtitle = c
			default:
				said[r] = true
				w.counted[c] = true
			}
		}
	}
	look(holder)
	if subtitle != nil && !said[textRole] {
		w.counted[subtitle] = true
	}
}

// hasText reports whether there is text within n.
func hasText(n *html.Node) bool {
	for d := range n.Descendants() {
		if d.Type == html.TextNode && strings.TrimSpace(d.Data) != "" {
			return true
		}
	}
	return false
}
