package html

import (
	"bytes"
	"context"
	"errors"
	"io"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/pipeline"
)

// Bounds of reading.
const (
	// maxToken is the largest single tag, text or script, in bytes.
	maxToken = 16 << 20
	// maxWalk is how far the scanner looks for an element around the present one. Pages are
	// not nested as deeply, but for those that are made to cost time.
	maxWalk = 128
	// maxDepth is how many open elements are kept; those beyond only separate blocks.
	maxDepth = 1 << 16
	// tokensPerCheck is how many tokens are read between two looks at the context.
	tokensPerCheck = 4096
)

// scanner reads a page token by token. It keeps a stack of the open elements that matter
// for the text, and closes them as a browser does where end tags are missing.
type scanner struct {
	emitter
	lang   string
	stack  []open
	counts map[atom.Atom]int // of special elements in stack
	hidden int               // index of the outermost element that hides what is within, or -1
	form   bool              // a form was begun and its end tag has not come
}

// open is an element whose end has not come yet.
type open struct {
	atom atom.Atom
	kind kind
	gone bool   // closed out of order: it ends with what is within
	svg  bool   // it belongs to SVG or MathML
	name string // where atom is 0
}

func (s *scanner) visible() bool { return s.hidden < 0 }

func scan(ctx context.Context, body []byte) (pipeline.Text, error) {
	s := &scanner{counts: make(map[atom.Atom]int), hidden: -1}
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(maxToken)
	for n := 1; ; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return pipeline.Text{}, ctx.Err()
		}
		switch z.Next() {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				return pipeline.Text{}, tooLarge("a single element of the page is too large")
			}
			s.close(0)
			t := s.result(true)
			t.Language = s.lang
			return t, s.err()
		case html.TextToken:
			if s.visible() {
				s.text(z.Text())
			}
		case html.StartTagToken:
			s.startTag(z, false)
		case html.SelfClosingTagToken:
			s.startTag(z, true)
		case html.EndTagToken:
			name, _ := z.TagName()
			s.endTag(atom.Lookup(name), name)
		}
		if s.full() {
			return pipeline.Text{}, s.err()
		}
	}
}

func (e *emitter) err() error {
	if e.full() {
		return tooLarge("the text of the page is larger than 2 MiB")
	}
	return nil
}

func (s *scanner) startTag(z *html.Tokenizer, selfClosing bool) {
	name, more := z.TagName()
	el := element{atom: atom.Lookup(name)}
	el.kind = kinds[el.atom]
	if s.inForeign() && !s.holdsHTML() {
		if !breakouts[el.atom] {
			z.NextIsNotRawText()
			if !selfClosing {
				el.kind |= foreign
				s.push(el, name)
			}
			return
		}
		for s.inForeign() && !s.holdsHTML() {
			s.close(len(s.stack) - 1)
		}
	}
	var seen attribute
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if a := wanted(key); a&^seen != 0 { // the first of a name counts
			seen |= a
			el.note(a, string(value))
		}
	}
	switch el.atom {
	case atom.Html:
		if s.lang == "" {
			s.lang = el.lang
		}
		return
	case atom.Head, atom.Body:
		return
	}
	if !s.imply(el.atom, el.kind) {
		return
	}
	switch {
	case el.kind&void != 0:
		if s.visible() && el.kind&block != 0 && !el.hidden {
			s.body.Break()
		}
	case el.kind&foreign != 0 && selfClosing:
	case !s.visible() || el.kind != 0 || el.hidden || el.email != "" || el.link != "":
		s.push(el, name)
	}
}

// push opens el.
func (s *scanner) push(el element, name []byte) {
	if len(s.stack) == maxDepth {
		if s.visible() && el.kind&block != 0 {
			s.body.Break()
		}
		return
	}
	o := open{atom: el.atom, kind: el.kind, svg: el.kind&foreign != 0}
	if el.atom == 0 {
		o.name = string(name)
	}
	if s.visible() && !s.start(el) {
		s.hidden = len(s.stack)
	}
	if el.kind&special != 0 {
		s.counts[el.atom]++
	}
	s.stack = append(s.stack, o)
}

// close ends the open elements from the i-th on.
func (s *scanner) close(i int) {
	for n := len(s.stack); n > i || (n > 0 && s.stack[n-1].gone); n = len(s.stack) {
		o := s.stack[n-1]
		s.stack = s.stack[:n-1]
		if o.kind&special != 0 && !o.gone {
			s.counts[o.atom]--
		}
		switch {
		case s.visible():
			s.end(o.atom, o.kind)
		case s.hidden == n-1:
			s.hidden = -1
		}
	}
}

// inForeign reports whether the innermost element belongs to SVG or MathML. Both are
// skipped, so only where they end matters.
func (s *scanner) inForeign() bool {
	return len(s.stack) > 0 && s.stack[len(s.stack)-1].svg
}

// holdsHTML reports whether start tags in the innermost element are HTML again.
func (s *scanner) holdsHTML() bool {
	a := s.stack[len(s.stack)-1].atom
	return a == atom.Foreignobject || a == atom.Desc || a == atom.Title
}
