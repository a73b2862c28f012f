package html

import (
	"context"
	"fmt"

	"golang.org/x/net/html"
)

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
