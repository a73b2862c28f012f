package xml

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	htmlreader "github.com/vokter/vokter/stages/fetch/readers/html"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// rules say what of a format is text.
type rules struct {
	// only are the elements whose own text counts; nil: all.
	only []string
	// items are the elements that are items; nil: those that rules of XML name.
	items []string
	// attributes are those that count; nil: all but those that only tell programs something.
	attributes []string
	// feed is a feed: links are attributes or texts, and texts may be escaped HTML.
	feed bool
}

var none = []string{}

// rulesOf returns the rules of a page by its outermost element.
func rulesOf(root *html.Node) rules {
	switch root.Data {
	case "rss", "feed", "channel":
		return feed
	case "rdf":
		if child(root, "item") != nil && child(root, "channel") != nil { // RSS 1.0
			return feed
		}
	case "svg":
		return rules{only: []string{"title", "desc", "text", "tspan", "textpath", "a"}, items: none, attributes: none}
	case "opml":
		return rules{only: []string{"title"}, items: []string{"outline"}, attributes: []string{"text", "description", "xmlurl", "htmlurl", "url"}}
	case "article", "book", "chapter", "section", "set", "refentry", "part", "appendix", "preface":
		return rules{attributes: none, items: []string{"listitem", "varlistentry", "row", "step", "member"}} // DocBook
	}
	return rules{}
}

var feed = rules{
	only:  []string{"title", "subtitle", "tagline", "description", "summary", "content", "encoded", "link"},
	items: []string{"item", "entry"}, attributes: none, feed: true,
}

// titleOf returns the element that is the page's title, or nil.
func titleOf(root *html.Node) *html.Node {
	for _, holder := range []*html.Node{root, child(root, "channel"), child(root, "head"), child(root, "info")} {
		if t := child(holder, "title"); t != nil {
			return t
		}
	}
	return nil
}

// writer walks over a tree and writes what is wanted of it.
type writer struct {
	rules
	ctx    context.Context
	scope  *selector.Scope
	title  *html.Node // it was written beforehand
	body   blocks.Builder
	shown  int // > 0 within elements whose text counts
	count  int
	found  []pipeline.FeedItem // the items of a feed
	within bool                // an item of a feed
}

// family is what the children of an element need to know of each other.
type family struct {
	prefix string // of the outermost element
	mixed  bool   // there is text between them, to which they belong
	whole  bool   // one of them has the whole text of an item
}

func familyOf(n *html.Node, prefix string) family {
	f := family{prefix: prefix}
	for c := range n.ChildNodes() {
		switch {
		case c.Type == html.TextNode:
			f.mixed = f.mixed || strings.TrimSpace(c.Data) != ""
		case c.Data == "encoded", c.Data == "content" && prefixOf(c) == prefix:
			f.whole = true
		}
	}
	return f
}

func prefixOf(n *html.Node) string {
	prefix, _, ok := strings.Cut(written(n), ":")
	if !ok {
		return ""
	}
	return prefix
}

// node writes n. The depth of the tree is bounded, and so that of the recursion.
func (w *writer) node(n *html.Node, f family) error {
	if w.count++; w.count%tokensPerCheck == 0 && w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	if w.body.Len() > pipeline.MaxText {
		return blocks.TooLarge()
	}
	before := w.scope.Selected()
	chosen, attributes := w.scope.Enter(n)
	if before != w.scope.Selected() {
		w.body.Break()
	}
	for _, value := range attributes {
		w.block(value)
	}
	var err error
	switch {
	case n.Type == html.TextNode && w.scope.Wanted() && (w.shown > 0 || chosen && w.scope.Scoped()):
		w.body.Text([]byte(n.Data))
	case n.Type == html.ElementNode && (n != w.title || w.scope.Scoped()):
		err = w.element(n, f, chosen && w.scope.Scoped())
	}
	before = w.scope.Selected()
	w.scope.Leave(n)
	if before != w.scope.Selected() {
		w.body.Break()
	}
	return err
}

// element writes an element. chosen says that the view selects it for itself.
func (w *writer) element(n *html.Node, f family, chosen bool) error {
	attributes := w.attributesOf(n)
	item := w.isItem(n, f, attributes)
	switch {
	case item && w.feed && !w.within:
		w.body.Break()
		start := w.body.Len()
		w.within = true
		w.body.ItemStart()
		defer func() {
			w.body.ItemEnd()
			w.within = false
			if end := w.body.Len(); end > start {
				w.found = append(w.found, pipeline.FeedItem{ID: identity(n), Start: start, End: end})
			}
		}()
	case item:
		w.body.ItemStart()
		defer w.body.ItemEnd()
	case !f.mixed:
		w.body.Break()
		defer w.body.Break()
	}
	if w.scope.Wanted() {
		w.block(attributes)
		if w.feed && w.shown == 0 {
			if done, err := w.ofFeed(n, f, chosen); done || err != nil {
				return err
			}
		}
	}
	container := w.feed && (item || n.Data == "channel" || n.Parent.Type != html.ElementNode)
	if w.counts(n, f) || chosen && !container {
		w.shown++
		defer func() { w.shown-- }()
	}
	children := familyOf(n, f.prefix)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if err := w.node(c, children); err != nil {
			return err
		}
	}
	return nil
}

// identity returns what the item n of a feed is known by: its id (Atom), guid (RSS), name as a
// resource (RSS 1.0) or link; "" if it has none of them.
func identity(n *html.Node) string {
	for _, id := range []string{textOf(child(n, "id")), textOf(child(n, "guid")), attr(n, "rdf:about"), attr(child(n, "link"), "href"), textOf(child(n, "link"))} {
		if id = strings.TrimSpace(id); id != "" {
			return id
		}
	}
	return ""
}

// counts reports whether the text of n counts by the rules. In a feed, elements of extensions
// repeat what others say.
func (w *writer) counts(n *html.Node, f family) bool {
	if w.feed && n.Data != "encoded" && prefixOf(n) != f.prefix {
		return false
	}
	return w.only == nil || slices.Contains(w.only, n.Data)
}

func (w *writer) block(s string) {
	if s != "" {
		w.body.Break()
		w.body.Text([]byte(s))
		w.body.Break()
	}
}

// isItem reports whether n is an item.
func (w *writer) isItem(n *html.Node, f family, attributes string) bool {
	if w.items != nil {
		return slices.Contains(w.items, n.Data)
	}
	if f.mixed || child(n, "") == nil && attributes == "" {
		return false
	}
	return sibling(n, func(s *html.Node) *html.Node { return s.PrevSibling }) == n.Data ||
		sibling(n, func(s *html.Node) *html.Node { return s.NextSibling }) == n.Data
}

// sibling returns the name of the next element in one direction.
func sibling(n *html.Node, next func(*html.Node) *html.Node) string {
	for s := next(n); s != nil; s = next(s) {
		if s.Type == html.ElementNode {
			return s.Data
		}
	}
	return ""
}

// attributesOf returns the attributes of n that count, as one line.
func (w *writer) attributesOf(n *html.Node) string {
	var b strings.Builder
	for _, a := range n.Attr {
		switch prefix, _, _ := strings.Cut(a.Key, ":"); {
		case strings.TrimSpace(a.Val) == "":
			continue
		case w.attributes != nil && !slices.Contains(w.attributes, a.Key):
			continue
		case w.attributes == nil && (prefix == "xmlns" || prefix == "xml" || prefix == "xsi"):
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		name := strings.TrimPrefix(a.Namespace, selector.OriginalName)
		if w.attributes == nil || a.Key != "text" {
			b.WriteString(name[strings.LastIndexByte(name, ':')+1:] + ": ")
		}
		b.WriteString(a.Val)
	}
	return b.String()
}

// ofFeed writes n if it is an element that means something of its own in a feed, and reports
// whether it did.
func (w *writer) ofFeed(n *html.Node, f family, chosen bool) (done bool, err error) {
	switch {
	case n.Data == "link":
		if rel := attr(n, "rel"); rel != "" && rel != "alternate" && !chosen {
			return true, nil
		}
		w.block(attr(n, "href"))
		return false, nil
	case (n.Data == "description" || n.Data == "summary") && f.whole && !chosen:
		return true, nil
	case !w.counts(n, f):
		return false, nil
	}
	source := textOf(n)
	if child(n, "") != nil || attr(n, "type") == "text" || !strings.ContainsAny(source, "<&") {
		return false, nil
	}
	t, err := htmlreader.New().Read(w.ctx, pipeline.Raw{Body: []byte(source)}, pipeline.View{})
	if err != nil {
		return true, err
	}
	w.body.Append(t.Content)
	return true, nil
}
