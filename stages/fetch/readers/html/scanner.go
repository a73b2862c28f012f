package html

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

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

// maxReused is the largest memory of a text that is used again for another page, in bytes.
const maxReused = 1 << 20

var texts = sync.Pool{New: func() any { return new([]byte) }}

func scan(ctx context.Context, body []byte) (pipeline.Text, error) {
	s := &scanner{counts: make(map[atom.Atom]int), hidden: -1}
	memory := texts.Get().(*[]byte)
	s.body.Reuse(*memory)
	defer func() {
		if *memory = s.body.Memory(); cap(*memory) <= maxReused {
			texts.Put(memory)
		}
	}()
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
		if s.visible() && el.kind&apart != 0 && !el.hidden {
			s.body.Space()
		}
	case el.kind&foreign != 0 && selfClosing:
		if s.visible() && !el.hidden {
			s.body.Space()
		}
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

// breakouts are the elements that end SVG and MathML around them.
var breakouts = atoms(atom.B, atom.Big, atom.Blockquote, atom.Body, atom.Br, atom.Center, atom.Code, atom.Dd, atom.Div, atom.Dl,
	atom.Dt, atom.Em, atom.Embed, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Head, atom.Hr, atom.I, atom.Img, atom.Li,
	atom.Listing, atom.Menu, atom.Meta, atom.Nobr, atom.Ol, atom.P, atom.Pre, atom.Ruby, atom.S, atom.Small, atom.Span, atom.Strong,
	atom.Strike, atom.Sub, atom.Sup, atom.Table, atom.Tt, atom.U, atom.Ul, atom.Var)

func atoms(list ...atom.Atom) map[atom.Atom]bool {
	m := make(map[atom.Atom]bool, len(list))
	for _, a := range list {
		m[a] = true
	}
	return m
}

// Results of find that are no index.
const (
	none = -1 // there is no such element within the scope
	far  = -2 // not within maxWalk elements
)

// find returns the index of the innermost open element that is matches, unless stop
// matches one within it.
func (s *scanner) find(is, stop func(*open) bool) int {
	for i := len(s.stack) - 1; i >= 0; i-- {
		if i < len(s.stack)-maxWalk {
			return far
		}
		if is(&s.stack[i]) {
			return i
		}
		if stop(&s.stack[i]) {
			break
		}
	}
	return none
}

func (s *scanner) closeFound(i int) {
	if i >= 0 {
		s.close(i)
	}
}

func is(a atom.Atom) func(*open) bool { return func(o *open) bool { return o.atom == a && !o.gone } }

// Conditions for find, and where its search stops.
var (
	isLi       = is(atom.Li)
	isP        = is(atom.P)
	isForm     = is(atom.Form)
	isOption   = is(atom.Option)
	isOptgroup = is(atom.Optgroup)
	isTable    = is(atom.Table)
	inTemplate = is(atom.Template)
)

func isTerm(o *open) bool    { return o.atom == atom.Dd || o.atom == atom.Dt }
func isHeading(o *open) bool { return o.kind&heading != 0 }
func isSection(o *open) bool { return o.kind&section != 0 }
func isRow(o *open) bool     { return o.kind&section != 0 || o.atom == atom.Tr }
func atSpecial(o *open) bool { return o.kind&special != 0 && !o.gone }
func inScope(o *open) bool   { return o.kind&scope != 0 }
func inButton(o *open) bool  { return o.kind&scope != 0 || o.atom == atom.Button }
func inList(o *open) bool    { return o.kind&scope != 0 || o.atom == atom.Ol || o.atom == atom.Ul }
func inTable(o *open) bool   { return o.atom == atom.Table || o.atom == atom.Template }
func notSVG(o *open) bool    { return !o.svg }

// betweenItems stops the search for the item before: special elements other than
// address, div and p do.
func betweenItems(o *open) bool {
	return atSpecial(o) && o.atom != atom.Address && o.atom != atom.Div && o.atom != atom.P
}

// imply ends what the start tag of a ends without saying so. It returns false where the
// tag itself counts for nothing.
func (s *scanner) imply(a atom.Atom, k kind) bool {
	switch a {
	case atom.Li:
		s.closeFound(s.find(isLi, betweenItems))
	case atom.Dd, atom.Dt:
		s.closeFound(s.find(isTerm, betweenItems))
	case atom.Option:
		s.closeFound(s.find(isOption, atSpecial))
	case atom.Optgroup:
		s.closeFound(s.find(isOption, atSpecial))
		s.closeFound(s.find(isOptgroup, atSpecial))
	case atom.Form:
		if s.form {
			return false
		}
		s.form = true
		if s.betweenCells() {
			return false // such a form is empty
		}
	case atom.Table:
		if s.betweenCells() {
			s.closeFound(s.find(isTable, inTemplate))
		}
	case atom.Tr, atom.Td, atom.Th, atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption, atom.Colgroup:
		return s.within(a)
	}
	if k&closesP != 0 && s.counts[atom.P] > 0 {
		s.closeFound(s.find(isP, inButton))
	}
	if n := len(s.stack); k&heading != 0 && n > 0 && isHeading(&s.stack[n-1]) {
		s.close(n - 1)
	}
	return true
}

// betweenCells reports whether the present place is in a table but in none of its cells.
func (s *scanner) betweenCells() bool {
	n := len(s.stack)
	return n > 0 && isRow(&s.stack[n-1])
}

// within ends what is open down to the part of a table that an a may stand in.
func (s *scanner) within(a atom.Atom) bool {
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
	i := s.find(parent, inTemplate)
	if i < 0 {
		return false
	}
	s.close(i + 1)
	if parentAtom := s.stack[len(s.stack)-1].atom; (a == atom.Td || a == atom.Th) && parentAtom != atom.Tr {
		s.push(element{atom: atom.Tr, kind: kinds[atom.Tr]}, nil)
	}
	return true
}

// endTag ends the element that it belongs to, if there is one.
func (s *scanner) endTag(a atom.Atom, name []byte) {
	k := kinds[a]
	named := func(o *open) bool { return o.atom == a && (a != 0 || o.name == string(name)) && !o.gone }
	if s.inForeign() {
		if i := s.find(named, notSVG); i >= 0 {
			s.close(i)
			return
		}
	}
	same, stop := named, inScope
	switch {
	case a == atom.Br:
		if s.visible() {
			s.body.Break()
		}
		return
	case a == atom.Form:
		s.endForm()
		return
	case k&special == 0:
		stop = atSpecial
	case k&heading != 0:
		same = isHeading
	case a == atom.P:
		stop = inButton
	case a == atom.Li:
		stop = inList
	case a == atom.Template:
		stop = func(*open) bool { return false }
	case k&(section|cell) != 0, a == atom.Tr, a == atom.Caption:
		stop = inTable
	}
	i := none
	if k&special == 0 || k&heading != 0 || s.counts[a] > 0 {
		i = s.find(same, stop)
	}
	switch {
	case i >= 0:
		s.close(i)
	case i == far && s.counts[a] > 0:
		for i = len(s.stack) - 1; !same(&s.stack[i]); i-- {
		}
		s.close(i)
	case a == atom.P && s.visible():
		s.body.Break() // an empty paragraph
	}
}

// endForm ends the open form; what is open within it stays so.
func (s *scanner) endForm() {
	s.form = false
	i := s.find(isForm, inScope)
	if i < 0 {
		return
	}
	n := len(s.stack)
	for n > i+1 && (s.stack[n-1].kind&item != 0 || isP(&s.stack[n-1]) || isOption(&s.stack[n-1]) || isOptgroup(&s.stack[n-1])) {
		n--
	}
	s.close(n)
	if i == len(s.stack)-1 {
		s.close(i)
		return
	}
	s.counts[atom.Form]--
	s.stack[i].gone = true
}
