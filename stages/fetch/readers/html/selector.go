package html

import (
	"context"
	"errors"
	"fmt"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
)

// Bounds of a view.
const (
	maxSelectors   = 100
	maxSelectorLen = 1000
)

// selector is a compiled pipeline.Selector: css, or from and perhaps to.
type selector struct {
	css, from, to *matcher
	start         *html.Node // of the range, once it was met
	finish        *html.Node
	hits          []*html.Node
}

// selection is a list of selectors, and what they need to know of the page beforehand.
type selection struct {
	selectors []*selector
	ahead     lookahead
}

// Validate returns what is wrong with the selectors of view, joined
// *pipeline.FieldErrors, or nil.
func Validate(view pipeline.View) error {
	_, err := compile("select", view.Select)
	_, err2 := compile("remove", view.Remove)
	return errors.Join(err, err2)
}

func compile(field string, list []pipeline.Selector) (*selection, error) {
	if len(list) > maxSelectors {
		return nil, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%d selectors are too many; at most %d", len(list), maxSelectors)}
	}
	out := &selection{}
	var errs []error
	one := func(css string) *matcher {
		if css == "" {
			return nil
		}
		if len(css) > maxSelectorLen {
			errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("a selector of %d characters is too long; at most %d", len(css), maxSelectorLen)})
			return nil
		}
		if _, err := cascadia.ParseGroup(css); err != nil {
			errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%q is not a CSS selector: %v", css, err)})
			return nil
		}
		m, err := newMatcher(css, &out.ahead)
		if err != nil {
			errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%q cannot be used: %v", css, err)})
		}
		return m
	}
	for _, s := range list {
		if (s.CSS == "") == (s.From == "") || (s.To != "" && s.From == "") {
			errs = append(errs, &pipeline.FieldError{Field: field, Reason: "a selector is either CSS or a range from and to"})
			continue
		}
		out.selectors = append(out.selectors, &selector{css: one(s.CSS), from: one(s.From), to: one(s.To)})
	}
	return out, errors.Join(errs...)
}

// meet tells s of an element at depth, in document order.
func (s *selector) meet(n *html.Node, depth int) {
	css, from, to := s.css.meet(n, depth), s.from.meet(n, depth), s.to.meet(n, depth)
	switch {
	case css:
		s.hits = append(s.hits, n)
	case from && s.start == nil:
		s.start = n
	case to && s.start != nil && s.finish == nil:
		s.finish = n
	}
}

// matched reports whether s names anything. A range whose end is missing does not.
func (s *selector) matched() bool {
	return len(s.hits) > 0 || (s.start != nil && (s.to == nil || s.finish != nil))
}

// borders says how the selections change at a node: by enter before it and everything
// behind, by around only for what is within it.
type borders struct {
	enter  int
	around int
}

// resolve adds the borders of list to at.
func resolve(list *selection, at map[*html.Node]borders) {
	add := func(n *html.Node, enter, around int) {
		b := at[n]
		at[n] = borders{b.enter + enter, b.around + around}
	}
	for _, s := range list.selectors {
		if !s.matched() {
			continue
		}
		for _, n := range s.hits {
			add(n, 0, 1)
		}
		if s.start != nil {
			add(s.start, 1, 0)
		}
		if s.finish != nil {
			add(s.finish, -1, 0)
		}
	}
}

// mark finds out what the selectors of both lists match below root. It looks at ctx before
// each selector tries an element, which takes a time in proportion to the page at most.
func mark(ctx context.Context, root *html.Node, lists ...*selection) error {
	for _, list := range lists {
		if err := list.ahead.look(ctx, root); err != nil {
			return err
		}
	}
	return elements(ctx, root, func(n *html.Node, depth int) {
		for _, list := range lists {
			for _, s := range list.selectors {
				if ctx.Err() == nil {
					s.meet(n, depth)
				}
			}
		}
	})
}

// maxHas is how many :has the selectors of one list may hold, since they are bits of a word.
const maxHas = 64

// lookahead knows which elements hold what the arguments of :has match. It finds that out
// before the elements are met: for each :has in one walk, whatever the page.
type lookahead struct {
	tests []test
	found map[*html.Node]uint64 // bit i: the element passes test i
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
	l.found = make(map[*html.Node]uint64)
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
	depth := 0
	for n := root.FirstChild; n != nil; {
		if n.Type == html.ElementNode {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			meet(n, depth)
		}
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
