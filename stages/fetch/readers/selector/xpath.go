package selector

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/antchfx/xpath"
	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
)

// maxSteps bounds the evaluation of all XPaths of a view on one page: moves from node to node, and
// pieces of 16 bytes of the texts that they look at. It takes two or three seconds.
const maxSteps = 100_000_000

// stepsPerCheck is how many steps are taken between two looks at the context.
const stepsPerCheck = 1 << 14

// expression is an XPath and what it named on the page that it was run on.
type expression struct {
	text   string
	expr   *xpath.Expr
	broken error // why it cannot be used
	found  map[*html.Node]hit
}

// unbounded are functions whose time the steps do not bound.
var unbounded = regexp.MustCompile(`\b(matches|replace)\s*\(`)

// quoted are the strings within an expression.
var quoted = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// newExpression compiles text, which must name nodes.
func newExpression(text string) (*expression, error) {
	if f := unbounded.FindStringSubmatch(quoted.ReplaceAllString(text, "''")); f != nil {
		return nil, fmt.Errorf("column %d: the function %s() is not supported; use contains(), starts-with() or translate()", columnOf(text, f[0]), f[1])
	}
	fast, err := checkXPath(text)
	if err != nil {
		return nil, err
	}
	e := &expression{text: text}
	err = guarded(func() (err error) {
		e.expr, err = xpath.Compile(fast)
		return err
	})
	if err != nil {
		if strings.HasPrefix(err.Error(), "runtime error") {
			return nil, errArguments
		}
		if name, ok := strings.CutPrefix(err.Error(), "not yet support this function "); ok {
			return nil, fmt.Errorf("column %d: the function %s is not supported", columnOf(text, strings.TrimSuffix(name, "()")), name)
		}
		return nil, err
	}
	// The library finds some mistakes, such as a wrong type of an argument, only when it runs.
	if err := e.run(&walk{ctx: context.Background()}, trial); err != nil {
		if _, ok := errors.AsType[runtime.Error](err); ok {
			return nil, errArguments
		}
		return nil, err
	}
	return e, nil
}

var errArguments = errors.New("a function in it has too few arguments, or arguments of a wrong type")

// columnOf returns where part begins in text, in characters from 1.
func columnOf(text, part string) int {
	before, _, _ := strings.Cut(text, part)
	return utf8.RuneCountInString(before) + 1
}

// trial is a small page on which mistakes show.
var trial = func() *html.Node {
	root, err := html.Parse(strings.NewReader(`<html><body><div id="a" class="b"><p>c<b>d</b></p><p>1</p></div></body></html>`))
	if err != nil {
		panic(err)
	}
	return root
}()

// compiled returns the compiled expression of e, which may be nil.
func (e *expression) compiled() *xpath.Expr {
	if e == nil {
		return nil
	}
	return e.expr
}

var errSteps = errors.New("it takes too long on this page; name the elements more directly, or use a CSS selector")

// run finds the nodes below root that e names. It counts its steps in w.
func (e *expression) run(w *walk, root *html.Node) error {
	if e.broken != nil {
		return Unreadable(fmt.Errorf("%q is not an XPath: %w", e.text, e.broken))
	}
	e.found = make(map[*html.Node]hit)
	err := guarded(func() error {
		result := e.expr.Evaluate(&place{walk: w, root: root, node: root, attr: -1})
		it, ok := result.(*xpath.NodeIterator)
		if !ok {
			return errors.New("it computes a value; an expression that names elements, attributes or texts is needed")
		}
		for it.MoveNext() {
			at := it.Current().(*place)
			h := e.found[at.node]
			if h.node = at.node; at.attr >= 0 {
				h.attributes = append(h.attributes, at.Value())
			} else {
				h.whole = true
			}
			e.found[at.node] = h
		}
		return nil
	})
	switch {
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case err != nil && root == trial:
		return err
	case err != nil:
		return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: fmt.Sprintf("%q cannot be used: %v", e.text, err)}
	}
	return nil
}

// guarded turns a panic of f into an error: the library panics where an expression is wrong, and
// a walk does to end it.
func guarded(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = r
		default:
			err = fmt.Errorf("%v", r)
		}
	}()
	return f()
}

// walk counts the steps of the XPaths of a view on one page.
type walk struct {
	ctx   context.Context
	steps int
}

// step counts n steps. It panics when there were too many or the context is done: the library
// has no other way to end an evaluation.
func (w *walk) step(n int) {
	before := w.steps
	w.steps += n
	if w.steps > maxSteps {
		panic(errSteps)
	}
	if before/stepsPerCheck != w.steps/stepsPerCheck && w.ctx.Err() != nil {
		panic(w.ctx.Err())
	}
}

// place is where an evaluation stands: at a node, or at one of its attributes.
type place struct {
	*walk
	root, node *html.Node
	attr       int // or -1
}

var _ xpath.NodeNavigator = (*place)(nil)

func (p *place) NodeType() xpath.NodeType {
	switch {
	case p.node.Type == html.ElementNode && p.attr >= 0:
		return xpath.AttributeNode
	case p.node.Type == html.ElementNode:
		return xpath.ElementNode
	case p.node.Type == html.TextNode:
		return xpath.TextNode
	case p.node.Type == html.CommentNode:
		return xpath.CommentNode
	}
	return xpath.RootNode
}

// name returns the name with its prefix. Nodes of XML keep it in Namespace, since CSS wants it
// in lower case.
func (p *place) name() string {
	name, original := p.node.Data, p.node.Namespace
	if p.attr >= 0 {
		name, original = p.node.Attr[p.attr].Key, p.node.Attr[p.attr].Namespace
	}
	if rest, ok := strings.CutPrefix(original, OriginalName); ok {
		return rest
	}
	return name
}

// OriginalName stands before the name of an element or attribute of XML in the Namespace of its
// html.Node or html.Attribute.
const OriginalName = "xml:"

func (p *place) LocalName() string {
	if p.node.Type != html.ElementNode {
		return ""
	}
	name := p.name()
	return name[strings.LastIndexByte(name, ':')+1:]
}

func (p *place) Prefix() string {
	if p.node.Type != html.ElementNode {
		return ""
	}
	prefix, _, ok := strings.Cut(p.name(), ":")
	if !ok {
		return ""
	}
	return prefix
}

func (p *place) Value() string {
	switch {
	case p.node.Type == html.ElementNode && p.attr >= 0:
		p.step(1 + len(p.node.Attr[p.attr].Val)/16)
		return p.node.Attr[p.attr].Val
	case p.node.Type == html.TextNode, p.node.Type == html.CommentNode:
		p.step(1 + len(p.node.Data)/16)
		return p.node.Data
	}
	var b strings.Builder
	for n := p.node.FirstChild; n != nil; n = p.next(n) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
			p.step(len(n.Data) / 16)
		}
	}
	return b.String()
}

// next returns the node behind n in document order, within the present one.
func (p *place) next(n *html.Node) *html.Node {
	p.step(1)
	if n.FirstChild != nil {
		return n.FirstChild
	}
	for n != p.node && n.NextSibling == nil {
		n = n.Parent
	}
	if n == p.node {
		return nil
	}
	return n.NextSibling
}

func (p *place) Copy() xpath.NodeNavigator {
	p.step(1)
	c := *p
	return &c
}

func (p *place) MoveToRoot() { p.node, p.attr = p.root, -1 }

func (p *place) MoveToParent() bool {
	if p.attr >= 0 {
		p.attr = -1
		return true
	}
	return p.move(p.node.Parent)
}

func (p *place) MoveToNextAttribute() bool {
	p.step(1)
	if p.node.Type != html.ElementNode || p.attr >= len(p.node.Attr)-1 {
		return false
	}
	p.attr++
	return true
}

func (p *place) MoveToChild() bool    { return p.attr < 0 && p.move(p.node.FirstChild) }
func (p *place) MoveToNext() bool     { return p.attr < 0 && p.move(p.node.NextSibling) }
func (p *place) MoveToPrevious() bool { return p.attr < 0 && p.move(p.node.PrevSibling) }

func (p *place) MoveToFirst() bool {
	if p.attr >= 0 || p.node.PrevSibling == nil {
		return false
	}
	if p.node.Parent != nil {
		return p.move(p.node.Parent.FirstChild)
	}
	for p.MoveToPrevious() {
	}
	return true
}

func (p *place) MoveTo(other xpath.NodeNavigator) bool {
	o, ok := other.(*place)
	if !ok || o.root != p.root {
		return false
	}
	p.node, p.attr = o.node, o.attr
	return true
}

func (p *place) move(to *html.Node) bool {
	p.step(1)
	if to == nil {
		return false
	}
	p.node = to
	return true
}
