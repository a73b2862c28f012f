package xml

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// Bounds of reading.
const (
	// maxDepth is how deep elements may be nested.
	maxDepth = 512
	// maxNodes is how many elements and texts a page may have, each of some 200 bytes.
	maxNodes = 1 << 20
	// tokensPerCheck is how many tokens are read between two looks at the context.
	tokensPerCheck = 4096
)

// parse reads body into a tree of html.Nodes, so that selectors work on it. The names of
// elements and attributes are in lower case, those of elements without their prefix; as they are
// written they stand in Namespace, behind selector.OriginalName. Entities other than those of
// HTML stay as they are written, and document types count for nothing: nothing is expanded and
// nothing is fetched.
func parse(ctx context.Context, body []byte) (*html.Node, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil } // it is UTF-8 already
	doc := &html.Node{Type: html.DocumentNode}
	at, depth, nodes := doc, 0, 0
	invalid := func(format string, args ...any) error {
		return blocks.Unreadable("the page is not valid XML: "+format+", at %s", append(args, blocks.Position(body, int(d.InputOffset())))...)
	}
	for n := 1; ; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if nodes > maxNodes {
			return nil, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the page has too many elements"}
		}
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			switch {
			case at != doc:
				return nil, invalid("it ends within <%.80s>", originalName(at))
			case rootOf(doc) == nil:
				return nil, invalid("it has no element")
			}
			return doc, nil
		}
		if err != nil {
			reason := err.Error()
			if s, ok := errors.AsType[*xml.SyntaxError](err); ok {
				reason = s.Msg
			}
			return nil, invalid("%s", reason)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth == maxDepth {
				return nil, blocks.Unreadable("the page is nested more than %d deep, at %s", maxDepth, blocks.Position(body, int(d.InputOffset())))
			}
			if at == doc && rootOf(doc) != nil {
				return nil, invalid("a second document begins")
			}
			e := newElement(token)
			at.AppendChild(e)
			at = e
			depth++
			nodes += 1 + len(token.Attr)
		case xml.EndElement:
			if name := qualifiedName(token.Name); at == doc || originalName(at) != name {
				return nil, invalid("</%.80s> ends nothing that is open", name)
			}
			at = at.Parent
			depth--
		case xml.CharData:
			if at == doc {
				if len(bytes.TrimSpace(token)) > 0 {
					return nil, invalid("there is text outside of the document's element")
				}
				continue
			}
			at.AppendChild(&html.Node{Type: html.TextNode, Data: string(token)})
			nodes++
		}
	}
}

func qualifiedName(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

func newElement(t xml.StartElement) *html.Node {
	n := &html.Node{Type: html.ElementNode, Data: lowerASCII(t.Name.Local), Namespace: selector.OriginalName + qualifiedName(t.Name)}
	for _, a := range t.Attr {
		name := qualifiedName(a.Name)
		n.Attr = append(n.Attr, html.Attribute{Namespace: selector.OriginalName + name, Key: lowerASCII(name), Val: a.Value})
	}
	return n
}

// lowerASCII makes the letters of ASCII small, as CSS does.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, s)
}

// originalName returns the name of n as the page writes it.
func originalName(n *html.Node) string { return strings.TrimPrefix(n.Namespace, selector.OriginalName) }

func rootOf(doc *html.Node) *html.Node { return childNamed(doc, "") }

// childNamed returns the first element within n that has the name, or any if that is empty.
func childNamed(n *html.Node, name string) *html.Node {
	if n == nil {
		return nil
	}
	for c := range n.ChildNodes() {
		if c.Type == html.ElementNode && (name == "" || c.Data == name) {
			return c
		}
	}
	return nil
}

func attribute(n *html.Node, key string) string {
	if n == nil {
		return ""
	}
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// textOf returns the text of n, which may be nil.
func textOf(n *html.Node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
