package selector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
)

// Markup is a view of pages that are trees: its CSS selectors, XPath expressions, and ranges
// between them. It is for one reading of one page.
type Markup struct {
	sel, rem *selection
	view     pipeline.View
}

// selection is a list of selectors, and what they need to know of the page beforehand.
type selection struct {
	selectors []*selected
	ahead     lookahead
}

// selected is what a pipeline.Selector names: the matches of one, or the range from and to.
type selected struct {
	one, from, to *target
	start, finish *html.Node // of the range, once it was found
	hits          []hit
}

// hit is what a selector names of a node.
type hit struct {
	node       *html.Node
	whole      bool     // the node itself
	attributes []string // the values of attributes
}

// target finds what one expression names. The nil target finds nothing.
type target struct {
	css   *matcher
	xpath *expression
}

// NewMarkup compiles view, or returns what is wrong with it, joined *pipeline.FieldErrors.
func NewMarkup(view pipeline.View) (*Markup, error) {
	sel, err := compile("select", view.Select)
	rem, err2 := compile("remove", view.Remove)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return &Markup{sel, rem, view}, nil
}

func forMarkup(s pipeline.Selector) bool {
	return s.CSS != "" || s.XPath != "" || s.Path != "" || s.From != "" && !isText(s.From)
}

func compile(field string, list []pipeline.Selector) (*selection, error) {
	if err := wellFormed(field, list); err != nil {
		return nil, err
	}
	out := &selection{}
	var errs []error
	one := func(s pipeline.Selector) *target {
		switch {
		case s.CSS != "":
			m, err := out.css(field, s.CSS)
			errs = append(errs, err)
			return &target{css: m}
		case s.XPath != "":
			x, err := newExpression(s.XPath)
			if err != nil {
				errs = append(errs, unusable(field, "an XPath", s.XPath, err))
			}
			return &target{xpath: x}
		case s.Path != "":
			// In a JSON document it is a pointer, for which nearly everything is valid.
			x, err := newExpression(s.Path)
			return &target{xpath: &expression{text: s.Path, expr: x.compiled(), broken: err}}
		}
		return nil
	}
	for _, s := range list {
		if !forMarkup(s) {
			continue
		}
		if s.From == "" {
			out.selectors = append(out.selectors, &selected{one: one(s)})
			continue
		}
		out.selectors = append(out.selectors, &selected{from: one(pipeline.ParseSelector(s.From)), to: one(pipeline.ParseSelector(s.To))})
	}
	return out, errors.Join(errs...)
}

func (l *selection) css(field, css string) (*matcher, error) {
	if _, err := cascadia.ParseGroup(css); err != nil {
		if what, ends := strings.CutSuffix(err.Error(), ", found EOF instead"); ends {
			err = fmt.Errorf("column %d: it ends where %s is expected", utf8.RuneCountInString(css)+1, strings.TrimPrefix(what, "expected "))
		}
		return nil, unusable(field, "a CSS selector", css, err)
	}
	m, err := newMatcher(css, &l.ahead)
	if err != nil {
		return nil, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%q cannot be used: %s", css, visible(err))}
	}
	return m, nil
}

// find looks for what all selectors of l name below root. It looks at ctx before each selector
// tries a node, which takes a time in proportion to the page at most.
func (l *selection) find(w *walk, root *html.Node) error {
	ctx := w.ctx
	if err := l.ahead.look(ctx, root); err != nil {
		return err
	}
	for _, s := range l.selectors {
		for _, t := range []*target{s.one, s.from, s.to} {
			if t != nil && t.xpath != nil {
				if err := t.xpath.run(w, root); err != nil {
					return err
				}
			}
		}
	}
	return nodes(ctx, root, func(n *html.Node, depth int) {
		for _, s := range l.selectors {
			if ctx.Err() == nil {
				s.meet(n, depth)
			}
		}
	})
}

// meet takes note of a node at depth. The nodes come in document order.
func (s *selected) meet(n *html.Node, depth int) {
	one, isOne := s.one.meet(n, depth)
	_, isFrom := s.from.meet(n, depth)
	_, isTo := s.to.meet(n, depth)
	switch {
	case isOne:
		s.hits = append(s.hits, one)
	case isFrom && s.start == nil:
		s.start = n
	case isTo && s.start != nil && s.finish == nil:
		s.finish = n
	}
}

func (t *target) meet(n *html.Node, depth int) (hit, bool) {
	switch {
	case t == nil:
		return hit{}, false
	case t.xpath != nil:
		h, ok := t.xpath.found[n]
		return h, ok
	}
	return hit{node: n, whole: true}, n.Type == html.ElementNode && t.css.meet(n, depth)
}

// matched reports whether s names anything. A range whose end is missing does not.
func (s *selected) matched() bool {
	return len(s.hits) > 0 || (s.start != nil && (s.to == nil || s.finish != nil))
}

// borders says how a selection changes at a node: by enter before it and everything behind, by
// around only for what is within it.
type borders struct {
	enter, around int
	attributes    []string
}

// borders returns where the parts that l names begin and end.
func (l *selection) borders() map[*html.Node]borders {
	at := map[*html.Node]borders{}
	add := func(n *html.Node, enter, around int, attributes []string) {
		b := at[n]
		at[n] = borders{b.enter + enter, b.around + around, append(b.attributes, attributes...)}
	}
	for _, s := range l.selectors {
		if !s.matched() {
			continue
		}
		for _, h := range s.hits {
			around := 0
			if h.whole {
				around = 1
			}
			add(h.node, 0, around, h.attributes)
		}
		if s.start != nil {
			add(s.start, 1, 0, nil)
		}
		if s.finish != nil {
			add(s.finish, -1, 0, nil)
		}
	}
	return at
}

// Scope says, while a tree is walked in document order, what of it is wanted.
type Scope struct {
	selects, removes map[*html.Node]borders
	scoped           bool
	selected         int // > 0 where the text is wanted
	removed          int // > 0 where it is not
}

// Find finds what m names below root. Where nothing matches it returns a *pipeline.FetchError of
// class FailSelectorGone.
func (m *Markup) Find(ctx context.Context, root *html.Node) (*Scope, error) {
	w := &walk{ctx: ctx}
	for _, list := range []*selection{m.sel, m.rem} {
		if err := list.find(w, root); err != nil {
			return nil, err
		}
	}
	s := &Scope{selects: m.sel.borders(), removes: m.rem.borders(), scoped: len(m.view.Select) > 0}
	if !s.scoped {
		s.selected = 1
	} else if len(s.selects) == 0 {
		return nil, Gone(m.view.Select, "a page of HTML or XML", forMarkup)
	}
	return s, nil
}

// Scoped reports whether only parts of the page are selected.
func (s *Scope) Scoped() bool { return s.scoped }

// Selected reports whether the present place is selected; it may have been removed.
func (s *Scope) Selected() bool { return s.selected > 0 }

// Removed reports whether the present place is taken out.
func (s *Scope) Removed() bool { return s.removed > 0 }

// Wanted reports whether the text of the present place is wanted.
func (s *Scope) Wanted() bool { return s.selected > 0 && s.removed == 0 }

// Enter comes to n. It returns whether n itself is selected, and the values of those of its
// attributes that are.
func (s *Scope) Enter(n *html.Node) (chosen bool, attributes []string) {
	sel, rem := s.selects[n], s.removes[n]
	s.removed += rem.enter + rem.around
	s.selected += sel.enter + sel.around
	if s.removed > 0 {
		return sel.around > 0, nil
	}
	return sel.around > 0, sel.attributes
}

// Leave goes on behind n and all that is within.
func (s *Scope) Leave(n *html.Node) {
	s.removed -= s.removes[n].around
	s.selected -= s.selects[n].around
}

// maxHas is how many :has the selectors of one list may hold, since they are bits of a word.
const maxHas = 64

// lookahead knows which elements hold what the arguments of :has match. It finds that out
// before the elements are met: for each :has in one walk, whatever the page. It also counts siblings.
type lookahead struct {
	tests  []test
	found  map[*html.Node]uint64 // bit i: the element passes test i
	counts siblingCounts
}

// test is one :has, or cascadia's :haschild.
type test struct {
	argument *matcher
	child    bool // only children count
}

// add adds a test and returns its bit.
func (l *lookahead) add(argument *matcher, child bool) (uint64, error) {
	if len(l.tests) == maxHas {
		return 0, fmt.Errorf("it is one :has too many; at most %d are possible", maxHas)
	}
	l.tests = append(l.tests, test{argument, child})
	return 1 << (len(l.tests) - 1), nil
}

// look runs the tests on the page.
func (l *lookahead) look(ctx context.Context, root *html.Node) error {
	l.found, l.counts = make(map[*html.Node]uint64), siblingCounts{}
	for i, t := range l.tests {
		bit := uint64(1) << i
		err := elements(ctx, root, func(n *html.Node, depth int) {
			if !t.argument.meet(n, depth) {
				return
			}
			if t.child {
				l.found[n.Parent] |= bit
				return
			}
			for p := n.Parent; p != nil && l.found[p]&bit == 0; p = p.Parent {
				l.found[p] |= bit
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// elements calls meet for all elements below root in document order, unless ctx ends first.
func elements(ctx context.Context, root *html.Node, meet func(n *html.Node, depth int)) error {
	return nodes(ctx, root, func(n *html.Node, depth int) {
		if n.Type == html.ElementNode {
			meet(n, depth)
		}
	})
}

// nodes calls meet for all nodes below root in document order, unless ctx ends first.
func nodes(ctx context.Context, root *html.Node, meet func(n *html.Node, depth int)) error {
	depth := 0
	for n := root.FirstChild; n != nil; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		meet(n, depth)
		if n.FirstChild != nil {
			n = n.FirstChild
			depth++
			continue
		}
		for n != root && n.NextSibling == nil {
			n = n.Parent
			depth--
		}
		if n == root {
			break
		}
		n = n.NextSibling
	}
	return nil
}
