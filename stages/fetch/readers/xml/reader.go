// Package xml reads XML and the formats that are made of it: RSS and Atom feeds, SVG, DocBook,
// OPML, RDF, SOAP, and any other.
package xml

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	xhtml "golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/html"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// Reader reads XML in UTF-8. The text of an element is a block, unless it stands within other
// text; the attributes of an element are one before it ("currency: USD, rate: 1.08"). Elements
// that hold others and have a neighbour of the same name are items.
//
// Of a feed the items count, each with its title, its text and its link, and with what shops add to them, such as
// the price; of SVG the texts; of
// OPML the titles and addresses of the outlines. A page whose element is html is read as XHTML.
type Reader struct{}

var _ pipeline.Reader = Reader{}

// New returns a Reader.
func New() Reader { return Reader{} }

// ContentTypes returns the media types of XML. It reads all others that end in +xml as well.
func (Reader) ContentTypes() []string {
	return []string{
		"application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/soap+xml",
		"image/svg+xml", "application/svg+xml", "application/docbook+xml", "text/x-opml", "application/xml-external-parsed-entity",
	}
}

// Extractor names the rules by which the text is made; it changes with them.
func (Reader) Extractor() string { return "xml/4" }

// Read returns the text of view, whose CSS selectors and XPath expressions count. It returns
// ctx's error if that is done first.
func (Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	parts, err := selector.NewMarkup(view)
	if err != nil {
		return pipeline.Text{}, selector.Unreadable(err)
	}
	var passed blocks.Passed
	page, err := parse(ctx, bytes.TrimPrefix(raw.Body, []byte("\ufeff")), &passed)
	if err != nil {
		return pipeline.Text{}, err
	}
	root := mainRoot(page.doc)
	if root.Data == "html" {
		raw.ContentType = "application/xhtml+xml"
		return html.New().Read(ctx, raw, view)
	}
	rules := rulesOf(root)
	if err := page.end(rules.isFeed, view.Items, &passed); err != nil {
		return pipeline.Text{}, err
	}
	scope, err := parts.Find(ctx, page.doc)
	if err != nil {
		return pipeline.Text{}, err
	}
	w := &writer{ctx: ctx, scope: scope, rules: rules, title: titleOf(root)}
	title := textOf(w.title)
	if content, ok, err := feedText(ctx, w.title); err != nil {
		return pipeline.Text{}, err
	} else if ok && w.isFeed {
		title = content
	}
	title = blocks.Line(title)
	if !scope.Scoped() && w.title != nil {
		w.body.Block(title)
	}
	names := root
	if channel := childNamed(root, "channel"); channel != nil && w.isFeed && root.Data == "rdf" { // of RSS 1.0, which has another prefix than RDF
		names = channel
	}
	for n := range page.doc.ChildNodes() {
		if err := w.writeNode(n, siblings{prefix: prefixOf(names)}); err != nil {
			return pipeline.Text{}, err
		}
	}
	t := pipeline.Text{Content: w.body.Content(), Keys: w.body.Keys(), Title: title, Passed: passed.Sentences()}
	if w.isFeed {
		t.Items = append([]pipeline.FeedItem{}, w.feedItems...)
	}
	for _, declared := range []string{attribute(root, "xml:lang"), textOf(childNamed(childNamed(root, "channel"), "language")), raw.ContentLanguage} {
		if t.Language = blocks.LanguageTag(strings.TrimSpace(declared)); t.Language != "" {
			break
		}
	}
	return t, nil
}

// mainRoot returns the outermost element that says what the page is: the first of a known format, else the first.
func mainRoot(doc *xhtml.Node) *xhtml.Node {
	for n := range doc.ChildNodes() {
		if n.Data == "html" || rulesOf(n).attributes != nil {
			return n
		}
	}
	return rootOf(doc)
}

// end says whether a page may end as it does. Of other XML only the last end tag may be missing, because what is
// not there would count as removed. A feed may lack the ends of what its items stand in; if it breaks off within an
// item, its complete ones can be read where only items count.
func (t tree) end(isFeed, items bool, passed *blocks.Passed) error {
	if t.open == nil {
		return nil
	}
	name := originalName(t.open)
	isCutEnd := bytes.HasPrefix(t.rest, []byte("</")) && strings.HasPrefix("</"+name+">", string(t.rest))
	switch {
	case isFeed && (t.open.Data == "channel" || t.open.Parent.Type == xhtml.DocumentNode), t.open.Parent.Type == xhtml.DocumentNode && isCutEnd:
		passed.Note(fmt.Sprintf("the page has no end tag of <%.80s>", name), "", t.body, len(t.body))
	case isFeed && items && dropCut(t.open):
		passed.Note("the page breaks off within an item, which was passed over", "", t.body, len(t.body))
	default:
		return blocks.Unreadable("the page is not valid XML: it ends within <%.80s>, at %s", name, blocks.Position(t.body, len(t.body)))
	}
	return nil
}
