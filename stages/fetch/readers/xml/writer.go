package xml

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	htmlreader "github.com/vokter/vokter/stages/fetch/readers/html"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// rules say what of a format is text.
type rules struct {
	// textElements are the elements whose own text counts; nil: all.
	textElements []string
	// items are the elements that are items; nil: those that rules of XML name.
	items []string
	// attributes are those that count; nil: all but those that only tell programs something.
	attributes []string
	// isFeed is a feed: links are attributes or texts, and texts may be escaped HTML.
	isFeed bool
}

var noNames = []string{}

// rulesOf returns the rules of a page by its outermost element.
func rulesOf(root *html.Node) rules {
	if isFeed(root) {
		return feedRules
	}
	switch root.Data {
	case "svg":
		return rules{textElements: []string{"title", "desc", "text", "tspan", "textpath", "a"}, items: noNames, attributes: noNames}
	case "opml":
		return rules{textElements: []string{"title"}, items: []string{"outline"}, attributes: []string{"text", "title", "description", "xmlurl", "htmlurl", "url"}}
	case "article", "book", "chapter", "section", "set", "refentry", "part", "appendix", "preface":
		return rules{attributes: noNames, items: []string{"listitem", "varlistentry", "row", "step", "member"}} // DocBook
	}
	return rules{}
}

var feedRules = rules{
	textElements: []string{"title", "subtitle", "tagline", "description", "summary", "content", "encoded", "body", "fullitem", "link"},
	items:        []string{"item", "entry"}, attributes: noNames, isFeed: true,
}

// titleOf returns the element that is the page's title, or nil.
func titleOf(root *html.Node) *html.Node {
	for _, holder := range []*html.Node{root, childNamed(root, "channel"), childNamed(root, "head"), childNamed(root, "info")} {
		if t := childNamed(holder, "title"); t != nil {
			return t
		}
	}
	return nil
}

// writer walks over a tree and writes what is wanted of it.
type writer struct {
	rules
	ctx        context.Context
	scope      *selector.Scope
	title      *html.Node // it was written beforehand
	body       blocks.Builder
	shownDepth int // > 0 within elements whose text counts
	count      int
	feedItems  []pipeline.FeedItem // the items of a feed
	inItem     bool                // an item of a feed
	counted    map[*html.Node]bool // elements of extensions that count in a feed
}

// siblings is what the children of an element need to know of each other.
type siblings struct {
	prefix      string // of the outermost element
	hasText     bool   // there is text between them, to which they belong
	hasFullText bool   // one of them has the whole text of an item
}

func siblingsIn(n *html.Node, prefix string) siblings {
	f := siblings{prefix: prefix}
	for c := range n.ChildNodes() {
		switch {
		case c.Type == html.TextNode:
			f.hasText = f.hasText || strings.TrimSpace(c.Data) != ""
		case isFullText(c), c.Data == "content" && prefixOf(c) == prefix:
			f.hasFullText = f.hasFullText || hasText(c)
		}
	}
	return f
}

func prefixOf(n *html.Node) string {
	prefix, _, ok := strings.Cut(originalName(n), ":")
	if !ok {
		return ""
	}
	return prefix
}

// writeNode writes n. The depth of the tree is bounded, and so that of the recursion.
func (w *writer) writeNode(n *html.Node, f siblings) error {
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
		w.writeBlock(value)
	}
	var err error
	switch {
	case n.Type == html.TextNode && w.scope.Wanted() && (w.shownDepth > 0 || chosen && w.scope.Scoped()):
		w.body.Text([]byte(n.Data))
	case n.Type == html.ElementNode && (n != w.title || w.scope.Scoped()):
		err = w.writeElement(n, f, chosen && w.scope.Scoped())
	}
	before = w.scope.Selected()
	w.scope.Leave(n)
	if before != w.scope.Selected() {
		w.body.Break()
	}
	return err
}

// writeElement writes an element. chosen says that the view selects it for itself.
func (w *writer) writeElement(n *html.Node, f siblings, chosen bool) error {
	if w.isFeed && w.shownDepth > 0 && htmlreader.IsSkipped(n.Data) && !chosen {
		return nil
	}
	attributes := w.attributesOf(n)
	isItem := w.isItem(n, f, attributes)
	switch {
	case isItem && w.isFeed && !w.inItem:
		return w.writeFeedItem(n, f, attributes, chosen)
	case isItem:
		w.body.ItemStart()
		w.body.SetKey(pipeline.NewKey(n.Data, cmp.Or(attribute(n, "id"), attribute(n, "key"), strings.TrimSpace(textOf(childNamed(n, "id"))))))
		err := w.writeWithin(n, f, attributes, isItem, chosen)
		w.body.ItemEnd()
		return err
	case f.hasText:
		return w.writeWithin(n, f, attributes, isItem, chosen)
	}
	w.body.Break()
	err := w.writeWithin(n, f, attributes, isItem, chosen)
	w.body.Break()
	return err
}

// writeFeedItem writes an item of a feed.
func (w *writer) writeFeedItem(n *html.Node, f siblings, attributes string, chosen bool) error {
	w.body.Break()
	start := w.body.Len()
	w.inItem = true
	w.countExtensions(n, f.prefix)
	w.body.ItemStart()
	id := identityOf(n)
	w.body.SetKey(pipeline.NewKey(n.Data, id))
	err := w.writeWithin(n, f, attributes, true, chosen)
	w.body.ItemEnd()
	w.inItem = false
	if end := w.body.Len(); end > start {
		w.feedItems = append(w.feedItems, pipeline.FeedItem{ID: id, Start: start, End: end})
	}
	return err
}

// writeWithin writes the attributes of an element and what is within.
func (w *writer) writeWithin(n *html.Node, f siblings, attributes string, isItem, chosen bool) error {
	if w.isFeed && !w.inItem && (n.Data == "channel" || n.Data == "feed") {
		w.countExtensions(n, f.prefix)
	}
	if w.scope.Wanted() {
		w.writeBlock(attributes)
		if w.isFeed && w.shownDepth == 0 {
			if done, err := w.writeFeedElement(n, f, chosen); done || err != nil {
				return err
			}
		}
	}
	container := w.isFeed && (isItem || n.Data == "channel" || n.Parent.Type != html.ElementNode)
	counts := w.hasCountedText(n, f) || chosen && !container
	if counts {
		w.shownDepth++
	}
	children := siblingsIn(n, f.prefix)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if err := w.writeNode(c, children); err != nil {
			return err
		}
	}
	if counts {
		w.shownDepth--
	}
	return nil
}

// identityOf returns what the item n of a feed is known by: its id (Atom), guid (RSS), name as a
// resource (RSS 1.0) or link; "" if it has none of them.
func identityOf(n *html.Node) string {
	for _, id := range []string{textOf(childNamed(n, "id")), textOf(childNamed(n, "guid")), attribute(n, "rdf:about"), attribute(childNamed(n, "link"), "href"), textOf(childNamed(n, "link"))} {
		if id = strings.TrimSpace(id); id != "" {
			return id
		}
	}
	return ""
}

// hasCountedText reports whether the text of n counts by the rules. In a feed, most elements of extensions
// repeat what others say.
func (w *writer) hasCountedText(n *html.Node, f siblings) bool {
	if w.counted[n] {
		return true
	}
	if w.isFeed && !isFullText(n) && prefixOf(n) != f.prefix {
		return false
	}
	return w.textElements == nil || slices.Contains(w.textElements, n.Data)
}

// writeBlock writes s as a block, unless it is empty.
func (w *writer) writeBlock(s string) {
	if s != "" {
		w.body.Break()
		w.body.Block(s)
	}
}

// isItem reports whether n is an item.
func (w *writer) isItem(n *html.Node, f siblings, attributes string) bool {
	if w.items != nil {
		return slices.Contains(w.items, n.Data)
	}
	if f.hasText || childNamed(n, "") == nil && attributes == "" {
		return false
	}
	return siblingName(n, func(s *html.Node) *html.Node { return s.PrevSibling }) == n.Data ||
		siblingName(n, func(s *html.Node) *html.Node { return s.NextSibling }) == n.Data
}

// siblingName returns the name of the next element in one direction.
func siblingName(n *html.Node, next func(*html.Node) *html.Node) string {
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
		case w.attributes != nil && !slices.Contains(w.attributes, a.Key), w.attributes != nil && a.Key == "title" && strings.TrimSpace(attribute(n, "text")) != "":
			continue
		case w.attributes == nil && (prefix == "xmlns" || prefix == "xml" || prefix == "xsi"):
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		name := strings.TrimPrefix(a.Namespace, selector.OriginalName)
		if w.attributes == nil || a.Key != "text" && a.Key != "title" {
			b.WriteString(name[strings.LastIndexByte(name, ':')+1:] + ": ")
		}
		b.WriteString(a.Val)
	}
	return b.String()
}

// writeFeedElement writes n if it is an element that means something of its own in a feed. done says
// that it did.
func (w *writer) writeFeedElement(n *html.Node, f siblings, chosen bool) (done bool, err error) {
	switch {
	case n.Data == "link":
		if rel := attribute(n, "rel"); rel != "" && rel != "alternate" && !chosen {
			return true, nil
		}
		w.writeBlock(attribute(n, "href"))
		return false, nil
	case (n.Data == "description" || n.Data == "summary") && f.hasFullText && !chosen:
		return true, nil
	case !w.hasCountedText(n, f):
		return false, nil
	}
	content, ok, err := feedText(w.ctx, n)
	if ok && err == nil {
		w.body.Append(content)
	}
	return ok, err
}

// feedText returns the text of n, an element of a feed, where it is HTML, escaped twice or encoded. Where it is not,
// ok is false.
func feedText(ctx context.Context, n *html.Node) (content string, ok bool, err error) {
	if n == nil || childNamed(n, "") != nil {
		return "", false, nil
	}
	source, kind := textOf(n), strings.ToLower(strings.TrimSpace(attribute(n, "type")))
	if attribute(n, "mode") == "base64" || n.Data == "content" && isBinary(kind) {
		if data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(source), "")); err == nil {
			if source, ok = string(data), true; !utf8.Valid(data) {
				return "", true, nil // such as a picture
			}
		}
	}
	switch {
	case !strings.ContainsAny(source, "<&") || kind == "text" || kind == "text/plain":
		if ok {
			content = blocks.Line(source) + "\n"
		}
		return content, ok, nil
	case !strings.HasSuffix(kind, "html") && !looksLikeHTML(source):
		return blocks.Line(html.UnescapeString(source)) + "\n", true, nil
	}
	t, err := htmlreader.New().Read(ctx, pipeline.Raw{Body: []byte(source)}, pipeline.View{})
	return t.Content, true, err
}

// isBinary reports whether Atom has content of a type, which is not that of text or XML, in Base64.
func isBinary(kind string) bool {
	return strings.Contains(kind, "/") && !strings.HasPrefix(kind, "text/") && !strings.HasSuffix(kind, "xml")
}

// looksLikeHTML reports whether source, whose type is not declared, has markup of HTML. A text such as "List<String>"
// or "the tag <b>" has none: it has no element of HTML that ends, that needs no end or has an attribute with a value.
func looksLikeHTML(source string) bool {
	z := html.NewTokenizer(strings.NewReader(source))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return false
		case html.CommentToken, html.SelfClosingTagToken:
			return true
		case html.StartTagToken:
			hasValue := bytes.IndexByte(z.Raw(), '=') > 0
			name, _ := z.TagName()
			if a := atom.Lookup(name); a != 0 && hasValue || slices.Contains(withoutEnd, a) {
				return true
			}
			z.NextIsNotRawText()
		case html.EndTagToken:
			if name, _ := z.TagName(); atom.Lookup(name) != 0 {
				return true
			}
		}
	}
}

// withoutEnd are the elements of HTML in texts that need no end tag.
var withoutEnd = []atom.Atom{atom.Br, atom.Hr, atom.Img, atom.Wbr, atom.P, atom.Li, atom.Dt, atom.Dd, atom.Tr, atom.Td, atom.Th}
