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
	sel, rem *selectionList
	view     pipeline.View
}

// selectionList is a list of compiled selectors, and what they need to know of the page beforehand.
type selectionList struct {
	selectors []*compiledSelector
	ahead     lookahead
}

// compiledSelector is what a pipeline.Selector names: the matches of one, or the range from and to.
type compiledSelector struct {
	single, from, to   *selectorTarget
	startNode, endNode *html.Node // of the range, once it was found
	hits               []hit
}

// hit is what a selector names of a node.
type hit struct {
	node       *html.Node
	isWhole    bool     // the node itself
	attributes []string // the values of attributes
}

// selectorTarget finds what one expression names. The nil target finds nothing.
type selectorTarget struct {
	css   *cssMatcher
	xpath *xpathExpression
}

// NewMarkup compiles view, or returns what is wrong with it, joined *pipeline.FieldErrors.
func NewMarkup(view pipeline.View) (*Markup, error) {
	sel, err := compileMarkup("select", view.Select)
	rem, err2 := compileMarkup("remove", view.Remove)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return &Markup{sel, rem, view}, nil
}

func forMarkup(s pipeline.Selector) bool {
	return s.CSS != "" || s.XPath != "" || s.Path != "" || s.From != "" && !isText(s.From)
}

func compileMarkup(field string, list []pipeline.Selector) (*selectionList, error) {
	if err := checkForm(field, list); err != nil {
		return nil, err
	}
	out := &selectionList{}
	var errs []error
	one := func(s pipeline.Selector) *selectorTarget {
		switch {
		case s.CSS != "":
			m, err := out.css(field, s.CSS)
			errs = append(errs, err)
			return &selectorTarget{css: m}
		case s.XPath != "":
			x, err := newXPathExpression(s.XPath)
			if err != nil {
				errs = append(errs, unusableError(field, "an XPath", s.XPath, err))
			}
			return &selectorTarget{xpath: x}
		case s.Path != "":
			// In a JSON document it is a pointer, for which nearly everything is valid.
			x, err := newXPathExpression(s.Path)
			return &selectorTarget{xpath: &xpathExpression{text: s.Path, expr: x.compiled(), compileError: err}}
		}
		return nil
	}
	for _, s := range list {
		if !forMarkup(s) {
			continue
		}
		if s.From == "" {
			out.selectors = append(out.selectors, &compiledSelector{single: one(s)})
			continue
		}
		out.selectors = append(out.selectors, &compiledSelector{from: one(pipeline.ParseSelector(s.From)), to: one(pipeline.ParseSelector(s.To))})
	}
	return out, errors.Join(errs...)
}

func (l *selectionList) css(field, css string) (*cssMatcher, error) {
	if _, err := cascadia.ParseGroup(css); err != nil {
		if what, ends := strings.CutSuffix(err.Error(), ", found EOF instead"); ends {
			err = fmt.Errorf("column %d: it ends where %s is expected", utf8.RuneCountInString(css)+1, strings.TrimPrefix(what, "expected "))
		}
		return nil, unusableError(field, "a CSS selector", css, err)
	}
	m, err := compoundParser{ahead: &l.ahead}.parseMatcher(css)
	if err != nil {
		return nil, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%q cannot be used: %s", css, printable(err))}
	}
	return m, nil
}

// find looks for what all selectors of l name below root. It looks at ctx before each selector
// tries a node, which takes a time in proportion to the page at most.
func (l *selectionList) find(w *stepCounter, root *html.Node) error {
	ctx := w.ctx
	if err := l.ahead.findAll(ctx, root); err != nil {
		return err
	}
	for _, s := range l.selectors {
		for _, t := range []*selectorTarget{s.single, s.from, s.to} {
			if t != nil && t.xpath != nil {
				if err := t.xpath.run(w, root); err != nil {
					return err
				}
			}
		}
	}
	return eachNode(ctx, root, func(n *html.Node, depth int) {
		for _, s := range l.selectors {
			if ctx.Err() == nil {
				s.visit(n, depth)
			}
		}
	})
}

// visit notes whether s names n, a node at depth. The nodes come in document order.
func (s *compiledSelector) visit(n *html.Node, depth int) {
	one, isOne := s.single.visit(n, depth)
	_, isFrom := s.from.visit(n, depth)
	_, isTo := s.to.visit(n, depth)
	switch {
	case isOne:
		s.hits = append(s.hits, one)
	case isFrom && s.startNode == nil:
		s.startNode = n
	case isTo && s.startNode != nil && s.endNode == nil:
		s.endNode = n
	}
}

// visit returns what t names of n, a node at depth, and whether it names anything of it.
func (t *selectorTarget) visit(n *html.Node, depth int) (hit, bool) {
	switch {
	case t == nil:
		return hit{}, false
	case t.xpath != nil:
		h, ok := t.xpath.hits[n]
		return h, ok
	}
	return hit{node: n, isWhole: true}, n.Type == html.ElementNode && t.css.visit(n, depth)
}

// hasMatched reports whether s names anything. A range whose end is missing does not.
func (s *compiledSelector) hasMatched() bool {
	return len(s.hits) > 0 || (s.startNode != nil && (s.to == nil || s.endNode != nil))
}

// selectionChange says how a selection changes at a node: by fromHere for it and everything behind,
// by within only for it and what is in it.
type selectionChange struct {
	fromHere, within int
	attributes       []string
}

// changesByNode returns where the parts that l names begin and end.
func (l *selectionList) changesByNode() map[*html.Node]selectionChange {
	at := map[*html.Node]selectionChange{}
	add := func(n *html.Node, enter, around int, attributes []string) {
		b := at[n]
		at[n] = selectionChange{b.fromHere + enter, b.within + around, append(b.attributes, attributes...)}
	}
	for _, s := range l.selectors {
		if !s.hasMatched() {
			continue
		}
		for _, h := range s.hits {
			around := 0
			if h.isWhole {
				around = 1
			}
			add(h.node, 0, around, h.attributes)
		}
		if s.startNode != nil {
			add(s.startNode, 1, 0, nil)
		}
		if s.endNode != nil {
			add(s.endNode, -1, 0, nil)
		}
	}
	return at
}

// Scope says, while a tree is walked in document order, what of it is wanted.
type Scope struct {
	selects, removes map[*html.Node]selectionChange
	isScoped         bool
	selectDepth      int // > 0 where the text is wanted
	removeDepth      int // > 0 where it is not
}

// Find finds what m names below root. Where nothing matches it returns a *pipeline.FetchError of
// class FailSelectorGone.
func (m *Markup) Find(ctx context.Context, root *html.Node) (*Scope, error) {
	w := &stepCounter{ctx: ctx}
	for _, list := range []*selectionList{m.sel, m.rem} {
		if err := list.find(w, root); err != nil {
			return nil, err
		}
	}
	s := &Scope{selects: m.sel.changesByNode(), removes: m.rem.changesByNode(), isScoped: len(m.view.Select) > 0}
	if !s.isScoped {
		s.selectDepth = 1
	} else if len(s.selects) == 0 {
		return nil, Gone(m.view.Select, "a page of HTML or XML", forMarkup)
	}
	return s, nil
}

// Scoped reports whether only parts of the page are selected.
func (s *Scope) Scoped() bool { return s.isScoped }

// Selected reports whether the present place is selected; it may have been removed.
func (s *Scope) Selected() bool { return s.selectDepth > 0 }

// Removed reports whether the present place is taken out.
func (s *Scope) Removed() bool { return s.removeDepth > 0 }

// Wanted reports whether the text of the present place is wanted.
func (s *Scope) Wanted() bool { return s.selectDepth > 0 && s.removeDepth == 0 }

// Enter comes to n. It returns whether n itself is selected, and the values of those of its
// attributes that are.
func (s *Scope) Enter(n *html.Node) (chosen bool, attributes []string) {
	sel, rem := s.selects[n], s.removes[n]
	s.removeDepth += rem.fromHere + rem.within
	s.selectDepth += sel.fromHere + sel.within
	if s.removeDepth > 0 {
		return sel.within > 0, nil
	}
	return sel.within > 0, sel.attributes
}

// Leave goes on behind n and all that is within.
func (s *Scope) Leave(n *html.Node) {
	s.removeDepth -= s.removes[n].within
	s.selectDepth -= s.selects[n].within
}

// maxHas is how many :has the selectors of one list may hold, since they are bits of a word.
const maxHas = 64

// lookahead knows which elements hold what the arguments of :has match. It finds that out
// before the elements are visited: for each :has in one walk, whatever the page. It also counts siblings.
type lookahead struct {
	tests    []hasCondition
	passed   map[*html.Node]uint64 // bit i: the element passes test i
	siblings siblingCounts
}

// hasCondition is one :has, or cascadia's :haschild.
type hasCondition struct {
	argument  *cssMatcher
	childOnly bool // only children count
}

// add adds a test and returns its bit.
func (l *lookahead) add(argument *cssMatcher, child bool) (uint64, error) {
	if len(l.tests) == maxHas {
		return 0, fmt.Errorf("it is one :has too many; at most %d are possible", maxHas)
	}
	l.tests = append(l.tests, hasCondition{argument, child})
	return 1 << (len(l.tests) - 1), nil
}

// findAll runs the tests on the page.
func (l *lookahead) findAll(ctx context.Context, root *html.Node) error {
	l.passed, l.siblings = make(map[*html.Node]uint64), siblingCounts{}
	for i, t := range l.tests {
		bit := uint64(1) << i
		err := eachElement(ctx, root, func(n *html.Node, depth int) {
			if !t.argument.visit(n, depth) {
				return
			}
			if t.childOnly {
				l.passed[n.Parent] |= bit
				return
			}
			for p := n.Parent; p != nil && l.passed[p]&bit == 0; p = p.Parent {
				l.passed[p] |= bit
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachElement calls meet for all elements below root in document order, unless ctx ends first.
func eachElement(ctx context.Context, root *html.Node, meet func(n *html.Node, depth int)) error {
	return eachNode(ctx, root, func(n *html.Node, depth int) {
		if n.Type == html.ElementNode {
			meet(n, depth)
		}
	})
}

// eachNode calls meet for all nodes below root in document order, unless ctx ends first.
func eachNode(ctx context.Context, root *html.Node, meet func(n *html.Node, depth int)) error {
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
