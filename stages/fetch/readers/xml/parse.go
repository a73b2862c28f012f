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
	"github.com/vokter/vokter/stages/fetch/readers/xmlclean"
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
// HTML and of the page itself stay as they are written: nothing is fetched. What is not valid is read as HTML would
// read it, or passed over, and noted.
func parse(ctx context.Context, body []byte, passed *blocks.Passed) (tree, error) {
	body = xmlclean.Clean(body, passed)
	tokens := newTokenizer(body, passed)
	t := tree{doc: &html.Node{Type: html.DocumentNode}, body: body}
	at, depth, nodes := t.doc, 0, 0
	for n := 1; ; n++ {
		if (n%tokensPerCheck == 0 || tokens.repaired) && ctx.Err() != nil {
			return t, ctx.Err()
		}
		if nodes > maxNodes {
			return t, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the page has too many elements"}
		}
		token := tokens.next()
		if token == nil {
			if rootOf(t.doc) == nil {
				return t, blocks.Unreadable("the page is not valid XML: it has no element, up to %s", blocks.Position(body, len(body)))
			}
			if at != t.doc {
				t.open, t.rest = at, bytes.TrimSpace(body[tokens.start:])
			}
			return t, nil
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth == maxDepth {
				return t, blocks.Unreadable("the page is nested more than %d deep, at %s", maxDepth, blocks.Position(body, tokens.start))
			}
			if at == t.doc && rootOf(t.doc) != nil {
				passed.Note("a second document follows the first", "more documents follow the first", body, tokens.start)
			}
			e := newElement(token)
			at.AppendChild(e)
			at = e
			depth++
			nodes += 1 + len(token.Attr)
		case xml.EndElement:
			name := qualifiedName(token.Name)
			ended := at
			for ended != t.doc && originalName(ended) != name && !strings.EqualFold(originalName(ended), name) {
				ended = ended.Parent
			}
			if ended == t.doc {
				passed.Note("an end tag that ends nothing was passed over", "end tags that end nothing were passed over", body, tokens.start)
				continue
			}
			if ended != at {
				passed.Note("an element without an end tag was ended", "elements without an end tag were ended", body, tokens.start)
			}
			for ; at != ended; at = at.Parent {
				depth--
			}
			at = at.Parent
			depth--
		case xml.CharData:
			if at != t.doc {
				at.AppendChild(&html.Node{Type: html.TextNode, Data: string(token)})
				nodes++
			} else if len(bytes.TrimSpace(token)) > 0 {
				passed.Note("text outside of the document's element was passed over", "texts outside of the document's element were passed over", body, tokens.start)
			}
		}
	}
}

// tree is a parsed page. Open is the innermost element that has no end, nil if there is none, and rest is what
// follows the last complete tag or text within it.
type tree struct {
	doc, open *html.Node
	body      []byte
	rest      []byte
}

// tokenizer reads body token by token. What encoding/xml refuses it reads as HTML.
type tokenizer struct {
	body        []byte
	d           *xml.Decoder
	base, start int  // where d and the last token began
	repaired    bool // the last token was no XML
	passed      *blocks.Passed
}

func newTokenizer(body []byte, passed *blocks.Passed) *tokenizer {
	t := &tokenizer{body: body, passed: passed}
	t.restart(0)
	return t
}

func (t *tokenizer) restart(at int) {
	t.base = at
	t.d = xml.NewDecoder(bytes.NewReader(t.body[at:]))
	t.d.Strict = false
	t.d.Entity = xml.HTMLEntity
	t.d.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil } // it is UTF-8 already
}

// next returns the next token, or nil at the end. A token is valid until the next call.
func (t *tokenizer) next() xml.Token {
	t.repaired = false
	for {
		t.start = t.base + int(t.d.InputOffset())
		token, err := t.d.RawToken()
		if err == nil {
			return token
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if token = t.repair(); token != nil {
			return token
		}
	}
}

// repair returns the token at start as HTML has it, nil if it means nothing there or the page ends within it.
func (t *tokenizer) repair() xml.Token {
	t.repaired = true
	z := html.NewTokenizer(bytes.NewReader(t.body[t.start:]))
	z.AllowCDATA(true)
	kind := z.Next()
	raw := z.Raw()
	at := t.start
	if kind == html.ErrorToken || at+len(raw) == len(t.body) && bytes.HasPrefix(raw, []byte("</")) { // the page ends within a tag
		t.d = xml.NewDecoder(bytes.NewReader(nil))
		t.base = t.start
		return nil
	}
	t.passed.Note("markup that is no XML was read as in HTML", "pieces of markup that are no XML were read as in HTML", t.body, at)
	name := xml.Name{Local: tagName(raw)}
	if prefix, local, ok := strings.Cut(name.Local, ":"); ok {
		name = xml.Name{Space: prefix, Local: local}
	}
	token := z.Token()
	t.restart(at + len(raw))
	switch kind {
	case html.TextToken:
		return xml.CharData(token.Data)
	case html.StartTagToken:
		s := xml.StartElement{Name: name}
		for _, a := range token.Attr {
			s.Attr = append(s.Attr, xml.Attr{Name: xml.Name{Local: a.Key}, Value: a.Val})
		}
		return s
	case html.EndTagToken:
		return xml.EndElement{Name: name}
	}
	return nil
}

// tagName returns the name in a tag as it is written.
func tagName(tag []byte) string {
	tag = bytes.TrimLeft(tag, "</")
	if end := bytes.IndexAny(tag, " \t\r\n\f/>"); end >= 0 {
		tag = tag[:end]
	}
	return string(tag)
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
	if c := n.FirstChild; c != nil && c == n.LastChild && c.Type == html.TextNode {
		return c.Data
	}
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
