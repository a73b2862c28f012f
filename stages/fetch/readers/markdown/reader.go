// Package markdown reads Markdown.
package markdown

import (
	"bytes"
	"context"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	goldmarkhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/html"
)

// Reader reads Markdown in UTF-8, with the extensions of GitHub. The text is that of the HTML that
// it stands for, and so are its elements to selectors. The first heading of the first level is the
// title.
type Reader struct{ markdown goldmark.Markdown }

var _ pipeline.Reader = Reader{}

// New returns a Reader.
func New() Reader {
	return Reader{goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(goldmarkhtml.WithUnsafe()))}
}

// ContentTypes returns the media types of Markdown.
func (Reader) ContentTypes() []string { return []string{"text/markdown", "text/x-markdown"} }

// Extractor names the rules by which the text is made; it changes with them.
func (Reader) Extractor() string { return "markdown/2" }

// Read returns the text of view, whose CSS selectors and XPath expressions count.
func (r Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	body := bytes.TrimPrefix(raw.Body, []byte("\ufeff"))
	if len(body) > pipeline.MaxText {
		return pipeline.Text{}, blocks.TooLarge()
	}
	if err := checkCost(body); err != nil {
		return pipeline.Text{}, err
	}
	doc := r.markdown.Parser().Parse(text.NewReader(body))
	var page bytes.Buffer
	if err := r.markdown.Renderer().Render(&page, body, doc); err != nil {
		return pipeline.Text{}, blocks.Unreadable("the page cannot be read as Markdown: %v", err)
	}
	raw.Body, raw.ContentType = page.Bytes(), "text/html"
	t, err := html.New().Read(ctx, raw, view)
	if t.Title == "" && err == nil {
		t.Title = titleOf(doc, body)
	}
	return t, err
}

// titleOf returns the text of the first heading of the first level among the children of doc.
func titleOf(doc ast.Node, body []byte) string {
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 1 {
			return blocks.Line(string(h.Lines().Value(body)))
		}
	}
	return ""
}
