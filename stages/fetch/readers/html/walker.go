package html

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/pipeline"
)

// walker reads a parsed page, of which only a part may be wanted.
type walker struct {
	emitter
	lang     string
	selects  map[*html.Node]borders
	removes  map[*html.Node]borders
	selected int // > 0 where the text is wanted
	removed  int // > 0 where it is not
	hidden   int // > 0 within elements that are not visible
}

func walk(ctx context.Context, body []byte, view pipeline.View) (pipeline.Text, error) {
	sel, err := compile("select", view.Select)
	if err != nil {
		return pipeline.Text{}, unreadable(err.Error())
	}
	rem, err := compile("remove", view.Remove)
	if err != nil {
		return pipeline.Text{}, unreadable(err.Error())
	}
	if err := affordable(ctx, body); err != nil {
		return pipeline.Text{}, err
	}
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return pipeline.Text{}, unreadable("the page is nested too deeply for selectors (more than 512 elements)")
	}
	if err := mark(ctx, root, sel, rem); err != nil {
		return pipeline.Text{}, err
	}
	w := &walker{selects: map[*html.Node]borders{}, removes: map[*html.Node]borders{}}
	resolve(sel, w.selects)
	resolve(rem, w.removes)
	if len(sel.selectors) == 0 {
		w.selected = 1
	} else if len(w.selects) == 0 {
		return pipeline.Text{}, &pipeline.FetchError{Class: pipeline.FailSelectorGone, Reason: gone(view.Select)}
	}
	if err := w.tree(ctx, root, len(sel.selectors) > 0); err != nil {
		return pipeline.Text{}, err
	}
	t := w.result(len(sel.selectors) == 0)
	t.Language = w.lang
	return t, w.err()
}

func gone(list []pipeline.Selector) string {
	var names []string
	for _, s := range list {
		switch {
		case s.CSS != "":
			names = append(names, fmt.Sprintf("%q", s.CSS))
		case s.To != "":
			names = append(names, fmt.Sprintf("from %q to %q", s.From, s.To))
		default:
			names = append(names, fmt.Sprintf("from %q", s.From))
		}
	}
	return "nothing on the page matches " + strings.Join(names, ", ")
}

// node is an element on the way from the root to where the walker stands.
type node struct {
	n       *html.Node
	el      element
	visible bool // start returned true
	selects int  // how much of selected ends with it
	removes int
}

// tree walks over root without recursion.
func (w *walker) tree(ctx context.Context, root *html.Node, scoped bool) error {
	var path []node
	count := 0
	for n := root; n != nil; {
		if count++; count%tokensPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch n.Type {
		case html.ElementNode:
			path = append(path, w.enter(n, scoped))
		case html.TextNode:
			if w.hidden == 0 && w.removed == 0 && (w.selected > 0 || w.inTitle) {
				w.text([]byte(n.Data))
			}
			if w.full() {
				return w.err()
			}
		}
		if n.FirstChild != nil {
			n = n.FirstChild
			continue
		}
		for n != nil {
			if k := len(path); k > 0 && path[k-1].n == n {
				w.leave(path[k-1])
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

func (w *walker) enter(n *html.Node, scoped bool) node {
	v := node{n: n, el: inspect(n), selects: w.selects[n].around, removes: w.removes[n].around}
	if n.DataAtom == atom.Html && w.lang == "" {
		w.lang = v.el.lang
	}
	w.removed += w.removes[n].enter + v.removes
	w.choose(w.selects[n].enter + v.selects)
	if v.el.kind&void != 0 {
		v.el.kind &= block // begins and ends at once
	}
	wanted := w.removed == 0 && (w.selected > 0 || v.el.atom == atom.Title)
	if !wanted {
		v.el.email = "" // its text goes nowhere
	}
	if w.hidden == 0 && (wanted || v.el.atom != atom.Title) {
		v.visible = w.start(v.el)
	}
	if !v.visible {
		w.hidden++
	} else if scoped && v.el.atom == atom.Title && v.selects > 0 {
		w.body.Break()
		for c := range n.ChildNodes() {
			w.body.Text([]byte(c.Data))
		}
		w.body.Break()
	}
	return v
}

func (w *walker) leave(v node) {
	if v.visible {
		w.end(v.el.atom, v.el.kind)
	} else {
		w.hidden--
	}
	w.removed -= v.removes
	w.choose(-v.selects)
}

// choose raises or lowers selected. Where the selected text begins or ends, so does a block.
func (w *walker) choose(by int) {
	before := w.selected > 0
	w.selected += by
	if before != (w.selected > 0) {
		w.body.Break()
	}
}

// inspect returns what the rules know of n. Elements of SVG and MathML are within a skipped one.
func inspect(n *html.Node) element {
	el := element{atom: n.DataAtom}
	el.kind = kinds[el.atom]
	var seen attribute
	for _, a := range n.Attr {
		if k := wanted(a.Key); k&^seen != 0 {
			seen |= k
			el.note(k, a.Val)
		}
	}
	return el
}

// maxNodes is how large a parsed page may become, in nodes of some 170 bytes.
const maxNodes = 1 << 20

// formatting are the elements that the parser opens anew in every paragraph until they
// are closed.
var formatting = atoms(atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small,
	atom.Strike, atom.Strong, atom.Tt, atom.U)

// affordable refuses a page whose tree would be out of all proportion to its size, before
// it is parsed. It counts from above: every open formatting element at every token, but of
// equal ones without attributes at most three, as the parser does.
func affordable(ctx context.Context, body []byte) error {
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(maxToken)
	open := map[atom.Atom]int{}
	plain := map[atom.Atom]int{}
	active, nodes := 0, 0
	for n := 1; ; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if nodes > maxNodes {
			return tooLarge("the page has too many elements for selectors")
		}
		switch z.Next() {
		case html.ErrorToken:
			return nil
		case html.TextToken:
			nodes += 1 + active
		case html.StartTagToken, html.SelfClosingTagToken:
			nodes += 1 + active
			name, attrs := z.TagName()
			a := atom.Lookup(name)
			if !formatting[a] {
				continue
			}
			if !attrs {
				if plain[a] >= 3 {
					continue
				}
				plain[a]++
			}
			open[a]++
			active++
		case html.EndTagToken:
			name, _ := z.TagName()
			if a := atom.Lookup(name); open[a] > 0 {
				open[a]--
				active--
				plain[a] = max(plain[a]-1, 0)
			}
		}
	}
}
