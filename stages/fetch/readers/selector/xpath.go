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

// xpathExpression is an XPath and what it named on the page that it was run on.
type xpathExpression struct {
	text         string
	expr         *xpath.Expr
	compileError error // why it cannot be used
	hits         map[*html.Node]hit
}

// unboundedFunctions are functions whose time the steps do not bound.
var unboundedFunctions = regexp.MustCompile(`\b(matches|replace)\s*\(`)

// quotedStrings are the strings within an expression.
var quotedStrings = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// newXPathExpression compiles text, which must name nodes.
func newXPathExpression(text string) (*xpathExpression, error) {
	if f := unboundedFunctions.FindStringSubmatch(quotedStrings.ReplaceAllString(text, "''")); f != nil {
		return nil, fmt.Errorf("column %d: the function %s() is not supported; use contains(), starts-with() or translate()", columnOfPart(text, f[0]), f[1])
	}
	e := &xpathExpression{text: text}
	var err error
	if e.expr, err = compileXPath(lastQuickly(text)); err != nil {
		if strings.HasPrefix(err.Error(), "runtime error") {
			return nil, errXPathArguments
		}
		if name, ok := strings.CutPrefix(err.Error(), "not yet support this function "); ok {
			return nil, fmt.Errorf("column %d: the function %s is not supported", columnOfPart(text, strings.TrimSuffix(name, "()")), name)
		}
	}
	if err != nil || !isWholeXPath(text) {
		return nil, xpathMistake(text, err)
	}
	// The library finds some mistakes, such as a wrong type of an argument, only when it runs.
	if err := e.run(&stepCounter{ctx: context.Background()}, trialPage); err != nil {
		if _, ok := errors.AsType[runtime.Error](err); ok {
			return nil, errXPathArguments
		}
		return nil, err
	}
	return e, nil
}

func compileXPath(text string) (e *xpath.Expr, err error) {
	err = recoverPanic(func() (err error) {
		e, err = xpath.Compile(text)
		return err
	})
	return e, err
}

// isWholeXPath reports whether the library reads text to its end: it ignores the b] of a[1]b]. A variable, which it
// refuses, stands behind the end.
func isWholeXPath(text string) bool {
	_, err := compileXPath(text + " | $end")
	return err != nil && strings.HasSuffix(err.Error(), "$end")
}

// xpathMistake says where text is no XPath: behind the longest part of it that is one. why is what the library says.
func xpathMistake(text string, why error) error {
	end := len(text)
	for end > 0 && !isWholeXPath(text[:end]) {
		_, size := utf8.DecodeLastRuneInString(text[:end])
		end -= size
	}
	said := "it means nothing there"
	if why != nil {
		said = strings.TrimPrefix(strings.TrimPrefix(why.Error(), "xpath: "), text+" has ")
	}
	if strings.HasSuffix(said, "must evaluate to a node-set") {
		said = "something is missing in it"
	}
	return fmt.Errorf("column %d: %q cannot be read: %s", utf8.RuneCountInString(text[:end])+1, text[end:], said)
}

// lastChild matches a step to the last of all children with a name. The library counts all siblings of each node to
// evaluate li[last()], and looks at one sibling to evaluate li[not(following-sibling::li)].
var lastChild = regexp.MustCompile(`(^|[^\pL\pN_.:@\])-])((?:[\pL_][\pL\pN_.-]*:)?(?:[\pL_][\pL\pN_.-]*|\*))\[\s*last\(\)\s*\]`)

// lastQuickly returns an expression that names the same nodes as text, in less time.
func lastQuickly(text string) string {
	var b strings.Builder
	from := 0
	for _, at := range append(quotedStrings.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		b.WriteString(lastChild.ReplaceAllString(text[from:at[0]], "$1$2[not(following-sibling::$2)]"))
		b.WriteString(text[at[0]:at[1]])
		from = at[1]
	}
	return b.String()
}

var errXPathArguments = errors.New("a function in it has too few arguments, or arguments of a wrong type")

// columnOfPart returns where part begins in text, in characters from 1.
func columnOfPart(text, part string) int {
	before, _, _ := strings.Cut(text, part)
	return utf8.RuneCountInString(before) + 1
}

// trialPage is a small page on which mistakes show.
var trialPage = func() *html.Node {
	root, err := html.Parse(strings.NewReader(`<html><body><div id="a" class="b"><p>c<b>d</b></p><p>1</p></div></body></html>`))
	if err != nil {
		panic(err)
	}
	return root
}()

// compiled returns the compiled expression of e, which may be nil.
func (e *xpathExpression) compiled() *xpath.Expr {
	if e == nil {
		return nil
	}
	return e.expr
}

var errTooManySteps = errors.New("it takes too long on this page; name the elements more directly, or use a CSS selector")

// run finds the nodes below root that e names. It counts its steps in w.
func (e *xpathExpression) run(w *stepCounter, root *html.Node) error {
	if e.compileError != nil {
		return Unreadable(fmt.Errorf("%q is not an XPath: %w", e.text, e.compileError))
	}
	e.hits = make(map[*html.Node]hit)
	err := recoverPanic(func() error {
		result := e.expr.Evaluate(&xpathNavigator{stepCounter: w, root: root, node: root, attr: -1})
		it, ok := result.(*xpath.NodeIterator)
		if !ok {
			return errors.New("it computes a value; an expression that names elements, attributes or texts is needed")
		}
		for it.MoveNext() {
			at := it.Current().(*xpathNavigator)
			h := e.hits[at.node]
			if h.node = at.node; at.attr >= 0 {
				h.attributes = append(h.attributes, at.Value())
			} else {
				h.isWhole = true
			}
			e.hits[at.node] = h
		}
		return nil
	})
	switch {
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case err != nil && root == trialPage:
		return err
	case err != nil:
		return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: fmt.Sprintf("%q cannot be used: %v", e.text, err)}
	}
	return nil
}

// recoverPanic turns a panic of f into an error: the library panics where an expression is wrong, and
// a stepCounter does to end it.
func recoverPanic(f func() error) (err error) {
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

// stepCounter counts the steps of the XPaths of a view on one page.
type stepCounter struct {
	ctx   context.Context
	steps int
}

// count counts n steps. It panics when there were too many or the context is done: the library
// has no other way to end an evaluation.
func (w *stepCounter) count(n int) {
	before := w.steps
	w.steps += n
	if w.steps > maxSteps {
		panic(errTooManySteps)
	}
	if before/stepsPerCheck != w.steps/stepsPerCheck && w.ctx.Err() != nil {
		panic(w.ctx.Err())
	}
}

// xpathNavigator is where an evaluation stands: at a node, or at one of its attributes.
type xpathNavigator struct {
	*stepCounter
	root, node *html.Node
	attr       int // or -1
}

var _ xpath.NodeNavigator = (*xpathNavigator)(nil)

func (p *xpathNavigator) NodeType() xpath.NodeType {
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
func (p *xpathNavigator) name() string {
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

func (p *xpathNavigator) LocalName() string {
	if p.node.Type != html.ElementNode {
		return ""
	}
	name := p.name()
	return name[strings.LastIndexByte(name, ':')+1:]
}

func (p *xpathNavigator) Prefix() string {
	if p.node.Type != html.ElementNode {
		return ""
	}
	prefix, _, ok := strings.Cut(p.name(), ":")
	if !ok {
		return ""
	}
	return prefix
}

func (p *xpathNavigator) Value() string {
	switch {
	case p.node.Type == html.ElementNode && p.attr >= 0:
		p.count(1 + len(p.node.Attr[p.attr].Val)/16)
		return p.node.Attr[p.attr].Val
	case p.node.Type == html.TextNode, p.node.Type == html.CommentNode:
		p.count(1 + len(p.node.Data)/16)
		return p.node.Data
	}
	var b strings.Builder
	for n := p.node.FirstChild; n != nil; n = p.next(n) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
			p.count(len(n.Data) / 16)
		}
	}
	return b.String()
}

// next returns the node behind n in document order, within the present one.
func (p *xpathNavigator) next(n *html.Node) *html.Node {
	p.count(1)
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

func (p *xpathNavigator) Copy() xpath.NodeNavigator {
	p.count(1)
	c := *p
	return &c
}

func (p *xpathNavigator) MoveToRoot() { p.node, p.attr = p.root, -1 }

func (p *xpathNavigator) MoveToParent() bool {
	if p.attr >= 0 {
		p.attr = -1
		return true
	}
	return p.move(p.node.Parent)
}

func (p *xpathNavigator) MoveToNextAttribute() bool {
	p.count(1)
	if p.node.Type != html.ElementNode || p.attr >= len(p.node.Attr)-1 {
		return false
	}
	p.attr++
	return true
}

func (p *xpathNavigator) MoveToChild() bool    { return p.attr < 0 && p.move(p.node.FirstChild) }
func (p *xpathNavigator) MoveToNext() bool     { return p.attr < 0 && p.move(p.node.NextSibling) }
func (p *xpathNavigator) MoveToPrevious() bool { return p.attr < 0 && p.move(p.node.PrevSibling) }

func (p *xpathNavigator) MoveToFirst() bool {
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

func (p *xpathNavigator) MoveTo(other xpath.NodeNavigator) bool {
	o, ok := other.(*xpathNavigator)
	if !ok || o.root != p.root {
		return false
	}
	p.node, p.attr = o.node, o.attr
	return true
}

func (p *xpathNavigator) move(to *html.Node) bool {
	p.count(1)
	if to == nil {
		return false
	}
	p.node = to
	return true
}
