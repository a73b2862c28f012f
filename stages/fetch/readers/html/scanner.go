package html

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"sync"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/internal/htmltree"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// Bounds of reading.
const (
	// maxToken is the largest single tag, text or script, in bytes.
	maxToken = 16 << 20
	// maxSearchDepth is how far the scanner looks for an element around the present one. Pages are
	// not nested as deeply, but for those that are made to cost time.
	maxSearchDepth = 128
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
	stack  []openElement
	counts map[atom.Atom]int // of special elements in stack
	hidden int               // index of the outermost element that hides what is within, or -1
	inForm bool              // a form was begun and its end tag has not come
	names  htmltree.TagNames
}

// openElement is an element whose end has not come yet.
type openElement struct {
	atom      atom.Atom
	kind      kind
	closed    bool   // closed out of order: it ends with what is within
	isForeign bool   // it belongs to SVG or MathML
	name      string // where atom is 0
}

func (s *scanner) isVisible() bool { return s.hidden < 0 }

// maxPooledText is the largest memory of a text that is used again for another page, in bytes, and
// maxPooledEvents that of its items.
const (
	maxPooledText   = 1 << 20
	maxPooledEvents = 1 << 15
)

// scanMemory is memory for the scan of a page.
type scanMemory struct {
	text  []byte
	items itemFinder
}

var scanMemories = sync.Pool{New: func() any { return new(scanMemory) }}

// scanPage returns the text of the page body, which it reads token by token.
func scanPage(ctx context.Context, body []byte) (pipeline.Text, error) {
	s := &scanner{counts: make(map[atom.Atom]int), hidden: -1}
	memory := scanMemories.Get().(*scanMemory)
	s.body.Reuse(memory.text)
	s.items = memory.items
	defer func() {
		memory.text, memory.items = s.body.Memory(), s.items
		memory.items.reset()
		if cap(memory.text) <= maxPooledText && cap(memory.items.events) <= maxPooledEvents {
			scanMemories.Put(memory)
		}
	}()
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(maxToken)
	var ending htmltree.Ending
	for n := 1; ; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return pipeline.Text{}, ctx.Err()
		}
		z.AllowCDATA(s.inForeign())
		switch token := z.Next(); token {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				return pipeline.Text{}, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "a single element of the page is too large"}
			}
			ending.Note(token, z.Raw(), 0)
			s.closeFrom(0)
			t := s.result(true)
			t.Language, t.Passed = s.lang, passedAt(body, ending)
			return t, s.checkSize()
		case html.CommentToken:
			ending.Note(token, z.Raw(), 0)
		case html.TextToken:
			if s.isVisible() {
				s.addText(z.Text())
			} else {
				ending.Note(token, z.Raw(), s.stack[len(s.stack)-1].atom)
			}
		case html.StartTagToken:
			s.handleStartTag(z, false)
		case html.SelfClosingTagToken:
			s.handleStartTag(z, true)
		case html.EndTagToken:
			ending = ""
			name := s.names.Of(z)
			s.handleEndTag(atom.Lookup(name), name)
		}
		if s.isFull() {
			return pipeline.Text{}, s.checkSize()
		}
	}
}

// passedAt returns what is said of a page body with this ending.
func passedAt(body []byte, ending htmltree.Ending) []string {
	if ending == "" {
		return nil
	}
	var passed blocks.Passed
	passed.Note("the page ends within "+string(ending)+", whose text is not shown", "", body, len(body))
	return passed.Sentences()
}

func (e *emitter) checkSize() error {
	if e.isFull() {
		return blocks.TooLarge()
	}
	return nil
}

// handleStartTag opens the element whose start tag z has read, and closes what that ends.
func (s *scanner) handleStartTag(z *html.Tokenizer, selfClosing bool) {
	name := s.names.Of(z)
	el := element{atom: atom.Lookup(name)}
	el.kind = elementKinds[el.atom]
	if s.inForeign() && !s.isIntegrationPoint() {
		if !breakoutElements[el.atom] {
			z.NextIsNotRawText()
			el.kind = foreignKind(s.stack[len(s.stack)-1].kind, string(name))
			if el.kind&skip == 0 || el.atom == atom.AnnotationXml {
				el.readAttributes(z)
			}
			if !selfClosing {
				s.push(&el, name)
			} else if s.isVisible() && el.kind&inlineBox != 0 && !el.hidden {
				s.body.Space()
			}
			return
		}
		for s.inForeign() && !s.isIntegrationPoint() {
			s.closeFrom(len(s.stack) - 1)
		}
	}
	el.readAttributes(z)
	switch el.atom {
	case atom.Html:
		s.lang = cmp.Or(s.lang, el.lang)
		return
	case atom.Head, atom.Body:
		return
	}
	if !s.closeImplied(el.atom, el.kind) {
		return
	}
	if el.target != 0 && s.isVisible() {
		s.noteLink(&el)
	}
	if el.kind == 0 && !el.hidden && s.isVisible() {
		s.beginInline(el.atom)
	}
	switch {
	case el.kind&void != 0:
		if s.isVisible() && el.kind&block != 0 && !el.hidden {
			s.body.Break()
		}
		if s.isVisible() && el.kind&inlineBox != 0 && !el.hidden {
			s.body.Space()
			s.addLabel(el.label())
			s.body.Space()
		}
	case el.kind&foreign != 0 && selfClosing:
		if s.isVisible() && !el.hidden {
			s.body.Space()
		}
	case !s.isVisible() || el.kind != 0 || el.hidden || el.email != "" || el.link != "":
		s.push(&el, name)
	}
}

// readAttributes sets what the attributes that z has read say of el.
func (el *element) readAttributes(z *html.Tokenizer) {
	attributes := htmltree.AttributesOf(z)
	var seen attribute
	for more := true; more; {
		var name, value []byte
		name, value, more = attributes.Next()
		if a := attributeOf(name); a != 0 && a&^seen != 0 && el.wants(a) { // the first of a name counts
			seen |= a
			setAttribute(el, a, value)
		}
	}
}

// push opens el.
func (s *scanner) push(el *element, name []byte) {
	if len(s.stack) == maxDepth {
		if s.isVisible() && el.kind&block != 0 {
			s.body.Break()
		}
		return
	}
	o := openElement{atom: el.atom, kind: el.kind, isForeign: el.kind&foreign != 0}
	if el.atom == 0 {
		o.name = string(name)
	}
	if s.isVisible() && !s.beginElement(el) {
		s.hidden = len(s.stack)
	}
	if el.kind&special != 0 {
		s.counts[el.atom]++
	}
	s.stack = append(s.stack, o)
}

// closeFrom ends the open elements from the i-th on.
func (s *scanner) closeFrom(i int) {
	for n := len(s.stack); n > i || (n > 0 && s.stack[n-1].closed); n = len(s.stack) {
		o := s.stack[n-1]
		s.stack = s.stack[:n-1]
		if o.kind&special != 0 && !o.closed {
			s.counts[o.atom]--
		}
		switch {
		case s.isVisible():
			s.endElement(o.atom, o.kind)
		case s.hidden == n-1:
			s.hidden = -1
		}
	}
}

// inForeign reports whether the innermost element belongs to SVG or MathML.
func (s *scanner) inForeign() bool {
	return len(s.stack) > 0 && s.stack[len(s.stack)-1].isForeign
}

// isIntegrationPoint reports whether start tags in the innermost element are HTML again.
func (s *scanner) isIntegrationPoint() bool { return s.stack[len(s.stack)-1].kind&integration != 0 }

// breakoutElements are the elements that end SVG and MathML around them.
var breakoutElements = atomSet(atom.B, atom.Big, atom.Blockquote, atom.Body, atom.Br, atom.Center, atom.Code, atom.Dd, atom.Div, atom.Dl,
	atom.Dt, atom.Em, atom.Embed, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Head, atom.Hr, atom.I, atom.Img, atom.Li,
	atom.Listing, atom.Menu, atom.Meta, atom.Nobr, atom.Ol, atom.P, atom.Pre, atom.Ruby, atom.S, atom.Small, atom.Span, atom.Strong,
	atom.Strike, atom.Sub, atom.Sup, atom.Table, atom.Tt, atom.U, atom.Ul, atom.Var)

func atomSet(list ...atom.Atom) map[atom.Atom]bool {
	m := make(map[atom.Atom]bool, len(list))
	for _, a := range list {
		m[a] = true
	}
	return m
}

// Results of find that are no index.
const (
	notFound = -1 // there is no such element within the scope
	tooFar   = -2 // not within maxSearchDepth elements
)

// find returns the index of the innermost open element that is matches, unless stop
// matches one within it.
func (s *scanner) find(is, stop func(*openElement) bool) int {
	for i := len(s.stack) - 1; i >= 0; i-- {
		if i < len(s.stack)-maxSearchDepth {
			return tooFar
		}
		if is(&s.stack[i]) {
			return i
		}
		if stop(&s.stack[i]) {
			break
		}
	}
	return notFound
}

// closeIfFound closes the elements from the i-th on, if i is an index.
func (s *scanner) closeIfFound(i int) {
	if i >= 0 {
		s.closeFrom(i)
	}
}

func matchAtom(a atom.Atom) func(*openElement) bool {
	return func(o *openElement) bool { return o.atom == a && !o.closed }
}

// Conditions for find, and where its search stops.
var (
	isLi       = matchAtom(atom.Li)
	isP        = matchAtom(atom.P)
	isForm     = matchAtom(atom.Form)
	isOption   = matchAtom(atom.Option)
	isOptgroup = matchAtom(atom.Optgroup)
	isTable    = matchAtom(atom.Table)
	isTemplate = matchAtom(atom.Template)
)

func isTerm(o *openElement) bool        { return o.atom == atom.Dd || o.atom == atom.Dt }
func isHeading(o *openElement) bool     { return o.kind&heading != 0 }
func isSection(o *openElement) bool     { return o.kind&tablePart != 0 }
func isRow(o *openElement) bool         { return o.kind&tablePart != 0 || o.atom == atom.Tr }
func isSpecial(o *openElement) bool     { return o.kind&special != 0 && !o.closed }
func isScope(o *openElement) bool       { return o.kind&scopeBoundary != 0 }
func isButtonScope(o *openElement) bool { return o.kind&scopeBoundary != 0 || o.atom == atom.Button }
func isListScope(o *openElement) bool {
	return o.kind&scopeBoundary != 0 || o.atom == atom.Ol || o.atom == atom.Ul
}
func isTableScope(o *openElement) bool { return o.atom == atom.Table || o.atom == atom.Template }
func isHTML(o *openElement) bool       { return !o.isForeign }

// endsItemSearch stops the search for the item before: special elements other than
// address, div and p do.
func endsItemSearch(o *openElement) bool {
	return isSpecial(o) && o.atom != atom.Address && o.atom != atom.Div && o.atom != atom.P
}

// closeImplied closes the elements that the start tag of a ends without an end tag. It returns false
// where the tag itself counts for nothing.
func (s *scanner) closeImplied(a atom.Atom, k kind) bool {
	switch a {
	case atom.Li:
		s.closeIfFound(s.find(isLi, endsItemSearch))
	case atom.Dd, atom.Dt:
		s.closeIfFound(s.find(isTerm, endsItemSearch))
	case atom.Option:
		s.closeIfFound(s.find(isOption, isSpecial))
	case atom.Optgroup:
		s.closeIfFound(s.find(isOption, isSpecial))
		s.closeIfFound(s.find(isOptgroup, isSpecial))
	case atom.Form:
		if s.inForm {
			return false
		}
		s.inForm = true
		if s.isBetweenCells() {
			return false // such a form is empty
		}
	case atom.Table:
		if s.isBetweenCells() {
			s.closeIfFound(s.find(isTable, isTemplate))
		}
	case atom.Tr, atom.Td, atom.Th, atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption, atom.Colgroup:
		return s.closeToTablePart(a)
	}
	if k&closesP != 0 && s.counts[atom.P] > 0 {
		s.closeIfFound(s.find(isP, isButtonScope))
	}
	if n := len(s.stack); k&heading != 0 && n > 0 && isHeading(&s.stack[n-1]) {
		s.closeFrom(n - 1)
	}
	return true
}

// isBetweenCells reports whether the present place is in a table but in none of its cells.
func (s *scanner) isBetweenCells() bool {
	n := len(s.stack)
	return n > 0 && isRow(&s.stack[n-1])
}

// closeToTablePart closes what is open within the part of a table that an a may stand in. It returns
// false where there is no such part.
func (s *scanner) closeToTablePart(a atom.Atom) bool {
	if s.counts[atom.Table] == 0 {
		return false
	}
	parent := isTable
	switch a {
	case atom.Tr:
		parent = isSection
	case atom.Td, atom.Th:
		parent = isRow
	}
	i := s.find(parent, isTemplate)
	if i < 0 {
		return false
	}
	s.closeFrom(i + 1)
	if parentAtom := s.stack[len(s.stack)-1].atom; (a == atom.Td || a == atom.Th) && parentAtom != atom.Tr {
		s.push(&element{atom: atom.Tr, kind: elementKinds[atom.Tr]}, nil)
	}
	return true
}

// handleEndTag closes the element that the end tag belongs to, if there is one.
func (s *scanner) handleEndTag(a atom.Atom, name []byte) {
	if a == atom.A && s.isVisible() {
		s.endLink()
	}
	k := elementKinds[a]
	if k == 0 && s.isVisible() {
		s.endInline(a)
	}
	named := func(o *openElement) bool { return o.atom == a && (a != 0 || o.name == string(name)) && !o.closed }
	if s.inForeign() {
		if i := s.find(named, isHTML); i >= 0 {
			s.closeFrom(i)
			return
		}
	}
	same, stop := named, isScope
	switch {
	case a == atom.Br:
		if s.isVisible() {
			s.body.Break()
		}
		return
	case a == atom.Form:
		s.closeForm()
		return
	case k&special == 0:
		stop = isSpecial
	case k&heading != 0:
		same = isHeading
	case a == atom.P:
		stop = isButtonScope
	case a == atom.Li:
		stop = isListScope
	case a == atom.Template:
		stop = func(*openElement) bool { return false }
	case k&(tablePart|cell) != 0, a == atom.Tr, a == atom.Caption:
		stop = isTableScope
	}
	i := notFound
	if k&special == 0 || k&heading != 0 || s.counts[a] > 0 {
		i = s.find(same, stop)
	}
	switch {
	case i >= 0:
		s.closeFrom(i)
	case i == tooFar && s.counts[a] > 0:
		for i = len(s.stack) - 1; !same(&s.stack[i]); i-- {
		}
		s.closeFrom(i)
	case a == atom.P && s.isVisible():
		s.body.Break() // an empty paragraph
	}
}

// closeForm closes the open form. What is open within it stays open.
func (s *scanner) closeForm() {
	s.inForm = false
	i := s.find(isForm, isScope)
	if i < 0 {
		return
	}
	n := len(s.stack)
	for n > i+1 && (s.stack[n-1].kind&item != 0 || isP(&s.stack[n-1]) || isOption(&s.stack[n-1]) || isOptgroup(&s.stack[n-1])) {
		n--
	}
	s.closeFrom(n)
	if i == len(s.stack)-1 {
		s.closeFrom(i)
		return
	}
	s.counts[atom.Form]--
	s.stack[i].closed = true
}
