// Package xml reads XML and the formats that are made of it: RSS and Atom feeds, SVG, DocBook,
// OPML, RDF, SOAP, and any other.
package xml

import (
	"bytes"
	"context"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/html"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// Reader reads XML in UTF-8. The text of an element is a block, unless it stands within other
// text; the attributes of an element are one before it ("currency: USD, rate: 1.08"). Elements
// that hold others and have a neighbour of the same name are items.
//
// Of a feed the items count, each with its title, its text and its link; of SVG the texts; of
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
func (Reader) Extractor() string { return "xml/1" }

// Read returns the text of view, whose CSS selectors and XPath expressions count. It returns
// ctx's error if that is done first.
func (Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	parts, err := selector.NewMarkup(view)
	if err != nil {
		return pipeline.Text{}, selector.Unreadable(err)
	}
	doc, err := parse(ctx, bytes.TrimPrefix(raw.Body, []byte("\ufeff")))
	if err != nil {
		return pipeline.Text{}, err
	}
	root := rootOf(doc)
	if root.Data == "html" {
		raw.ContentType = "application/xhtml+xml"
		return html.New().Read(ctx, raw, view)
	}
	scope, err := parts.Find(ctx, doc)
	if err != nil {
		return pipeline.Text{}, err
	}
	w := &writer{ctx: ctx, scope: scope, rules: rulesOf(root), title: titleOf(root)}
	title := blocks.Line(textOf(w.title))
	if !scope.Scoped() && w.title != nil {
		w.body.Text([]byte(title))
		w.body.Break()
	}
	names := root
	if w.isFeed && root.Data == "rdf" { // of RSS 1.0, which has another prefix than RDF
		names = childNamed(root, "channel")
	}
	if err := w.writeNode(root, siblings{prefix: prefixOf(names)}); err != nil {
		return pipeline.Text{}, err
	}
	t := pipeline.Text{Content: w.body.Content(), Title: title}
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
