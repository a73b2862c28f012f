package html

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/internal/htmltree"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// walker reads a parsed page, of which only a part may be wanted.
type walker struct {
	emitter
	scope       *selector.Scope
	lang        string // of the page, or of the first text that is selected
	hasLanguage bool   // such a text was found
	hidden      int    // > 0 within elements that are not visible
}

// walkPage returns the text of view in the page body, which it parses.
func walkPage(ctx context.Context, body []byte, view pipeline.View) (pipeline.Text, error) {
	parts, err := selector.NewMarkup(view)
	if err != nil {
		return pipeline.Text{}, selector.Unreadable(err)
	}
	root, ending, err := htmltree.Parse(ctx, body)
	switch {
	case ctx.Err() != nil:
		return pipeline.Text{}, ctx.Err()
	case errors.Is(err, htmltree.ErrTooLarge):
		return pipeline.Text{}, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: err.Error() + " for selectors"}
	case err != nil:
		return pipeline.Text{}, blocks.Unreadable("the page is nested too deeply for selectors (more than 512 elements)")
	}
	scope, err := parts.Find(ctx, root)
	if err != nil {
		return pipeline.Text{}, err
	}
	w := &walker{scope: scope}
	w.amount = isAmount(view)
	if err := w.walkTree(ctx, root); err != nil {
		return pipeline.Text{}, err
	}
	t := w.result(!w.scope.Scoped())
	t.Language, t.Passed = w.lang, passedAt(body, ending)
	return t, w.checkSize()
}

// pathNode is an element on the way from the root to where the walker stands.
type pathNode struct {
	n       *html.Node
	el      element
	visible bool // beginElement returned true
}

// walkTree walks over root without recursion.
func (w *walker) walkTree(ctx context.Context, root *html.Node) error {
	var path []pathNode
	count := 0
	for n := root; n != nil; {
		if count++; count%tokensPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch n.Type {
		case html.ElementNode:
			path = append(path, w.enterNode(n))
		case html.TextNode:
			w.enterScope(n)
			if w.hidden == 0 && (w.scope.Wanted() || w.inTitle && !w.scope.Removed()) {
				w.takeLanguage(n)
				w.addText([]byte(n.Data))
			}
			w.leaveScope(n)
			if w.isFull() {
				return w.checkSize()
			}
		}
		if n.FirstChild != nil {
			n = n.FirstChild
			continue
		}
		for n != nil {
			if k := len(path); k > 0 && path[k-1].n == n {
				w.exitNode(path[k-1])
				path = path[:k-1]
			}
			if n.NextSibling != nil {
				n = n.NextSibling
				break
			}
			n = n.Parent
		}
	}
	return nil
}

// takeLanguage takes the language of the first text that is selected from the nearest element around it
// that declares one.
func (w *walker) takeLanguage(n *html.Node) {
	if w.hasLanguage || !w.scope.Scoped() || !w.scope.Wanted() || strings.TrimSpace(n.Data) == "" {
		return
	}
	w.hasLanguage = true
	for e := n.Parent; e != nil; e = e.Parent {
		for _, a := range e.Attr {
			if a.Namespace == "" && a.Key == "lang" {
				w.lang = a.Val
				return
			}
		}
	}
}

func (w *walker) enterNode(n *html.Node) pathNode {
	v := pathNode{n: n, el: newElement(n)}
	if n.DataAtom == atom.Html && w.lang == "" {
		w.lang = v.el.lang
	}
	chosen := w.enterScope(n)
	if v.el.kind&void != 0 {
		v.el.kind &= block | inlineBox // begins and ends at once
	}
	wanted := w.scope.Wanted() || v.el.atom == atom.Title && !w.scope.Removed()
	if !wanted {
		v.el.email = "" // its text goes nowhere
	}
	if w.hidden == 0 && (wanted || v.el.atom != atom.Title) {
		if wanted && v.el.target != 0 && !v.el.hidden {
			w.noteLink(&v.el)
		}
		if v.el.kind == 0 && !v.el.hidden {
			w.beginInline(v.el.atom)
		}
		v.visible = w.beginElement(&v.el)
	}
	if v.visible && wanted {
		w.addLabel(v.el.label())
	}
	if !v.visible {
		w.hidden++
	} else if chosen && v.el.atom == atom.Title && w.scope.Scoped() {
		w.body.Break()
		for c := range n.ChildNodes() {
			w.body.Text([]byte(c.Data))
		}
		w.body.Break()
	}
	return v
}

func (w *walker) exitNode(v pathNode) {
	if v.visible {
		if v.el.kind == 0 {
			w.endInline(v.el.atom)
		}
		w.endElement(v.el.atom, v.el.kind)
	} else {
		w.hidden--
	}
	w.leaveScope(v.n)
}

// enterScope enters n in the scope, and reports whether n itself is selected. Where the selected text
// begins or ends, so does a block.
func (w *walker) enterScope(n *html.Node) bool {
	before := w.scope.Selected()
	chosen, attributes := w.scope.Enter(n)
	if before != w.scope.Selected() {
		w.body.Break()
	}
	for _, value := range attributes {
		w.body.Break()
		w.body.Block(value)
	}
	return chosen
}

func (w *walker) leaveScope(n *html.Node) {
	before := w.scope.Selected()
	w.scope.Leave(n)
	if before != w.scope.Selected() {
		w.body.Break()
	}
}

// newElement returns what the rules know of n.
func newElement(n *html.Node) element {
	el := element{atom: n.DataAtom, kind: elementKinds[n.DataAtom]}
	switch n.Namespace {
	case "svg":
		el.kind = foreignKind(inSVG, strings.ToLower(n.Data))
	case "math":
		el.kind = foreignKind(inMath, n.Data)
	}
	var seen attribute
	for _, a := range n.Attr {
		if k := attributeOf(a.Key); k&^seen != 0 && el.wants(k) {
			seen |= k
			setAttribute(&el, k, a.Val)
		}
	}
	return el
}
