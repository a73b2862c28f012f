package templates

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Limits of a template. maxNodes limits the work between two iterations, and maxValue the
// values in it. So it is enough that each iteration checks whether the execution must end; see
// instrument.
const (
	maxNodes     = 10_000 // including called templates, once for each call
	maxLoopDepth = 2      // loops within one another: the differences of the items of a digest
)

// checker walks a template as an execution does, but takes each branch and each loop once.
type checker struct {
	tmpl  *template.Template
	nodes int
	calls []string // the chain of calls being walked, outermost first
	err   error
}

// check returns an error if t does something that is not allowed.
func check(t *template.Template) error {
	for _, part := range t.Templates() {
		c := &checker{tmpl: t, calls: []string{part.Name()}}
		if part.Tree != nil {
			c.checkList(part.Tree, part.Root, 0)
		}
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// refuse records the first mistake, with its line.
func (c *checker) refuse(tree *parse.Tree, n parse.Node, format string, args ...any) {
	if c.err == nil {
		where, _ := tree.ErrorContext(n)
		c.err = plainError(fmt.Errorf("template: %s: %s", where, fmt.Sprintf(format, args...)))
	}
}

func (c *checker) checkList(tree *parse.Tree, l *parse.ListNode, loops int) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		c.checkNode(tree, n, loops)
	}
}

// countNode counts n, and reports whether to walk it.
func (c *checker) countNode(tree *parse.Tree, n parse.Node) bool {
	if c.nodes++; c.nodes > maxNodes {
		c.refuse(tree, n, "the template does more than %d things, counting what it calls as often as it calls it", maxNodes)
	}
	return c.err == nil
}

// checkNode walks n, which is inside that number of loops.
func (c *checker) checkNode(tree *parse.Tree, n parse.Node, loops int) {
	if !c.countNode(tree, n) {
		return
	}
	switch n := n.(type) {
	case *parse.ActionNode:
		c.checkPipe(tree, n.Pipe)
	case *parse.IfNode:
		c.checkBranch(tree, &n.BranchNode, loops, loops)
	case *parse.WithNode:
		c.checkBranch(tree, &n.BranchNode, loops, loops)
	case *parse.RangeNode:
		if !isField(n.Pipe) {
			c.refuse(tree, n, "range goes over a field such as .diffs only, not over a number or what is computed")
		}
		if loops >= maxLoopDepth {
			c.refuse(tree, n, "more than %d loops within one another", maxLoopDepth)
		}
		c.checkBranch(tree, &n.BranchNode, loops+1, loops)
	case *parse.TemplateNode:
		c.checkCall(tree, n, loops)
	}
}

func (c *checker) checkBranch(tree *parse.Tree, b *parse.BranchNode, loops, otherwise int) {
	c.checkPipe(tree, b.Pipe)
	c.checkList(tree, b.List, loops)
	c.checkList(tree, b.ElseList, otherwise)
}

// isField reports whether p is only a field. A field is never a number, because the data has
// none.
func isField(p *parse.PipeNode) bool {
	if len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return false
	}
	switch n := p.Cmds[0].Args[0].(type) {
	case *parse.FieldNode:
		return true
	case *parse.VariableNode:
		return len(n.Ident) > 1 // a variable alone may be anything
	}
	return false
}

// checkCall walks the template that n calls.
func (c *checker) checkCall(tree *parse.Tree, n *parse.TemplateNode, loops int) {
	if n.Pipe != nil {
		c.checkPipe(tree, n.Pipe)
	}
	called := c.tmpl.Lookup(n.Name)
	switch {
	case called == nil || called.Tree == nil:
		c.refuse(tree, n, "no template is defined as %q", n.Name)
	case slices.Contains(c.calls, n.Name):
		c.refuse(tree, n, "the template %q calls itself", n.Name)
	default:
		c.calls = append(c.calls, n.Name)
		c.checkList(called.Tree, called.Root, loops)
		c.calls = c.calls[:len(c.calls)-1]
	}
}

// checkPipe walks the commands of a pipeline.
func (c *checker) checkPipe(tree *parse.Tree, p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, cmd := range p.Cmds {
		for i, arg := range cmd.Args {
			c.checkArgument(tree, arg)
			if id, ok := arg.(*parse.IdentifierNode); ok {
				c.checkFunction(tree, id, cmd.Args[i+1:])
			}
		}
	}
}

func (c *checker) checkArgument(tree *parse.Tree, n parse.Node) {
	if !c.countNode(tree, n) {
		return
	}
	switch n := n.(type) {
	case *parse.PipeNode:
		c.checkPipe(tree, n)
	case *parse.ChainNode:
		c.checkArgument(tree, n.Node)
	}
}

// checkFunction refuses functions that are not on the list, and formats whose output could be large.
func (c *checker) checkFunction(tree *parse.Tree, id *parse.IdentifierNode, args []parse.Node) {
	if _, ours := functions[id.Ident]; !ours && !slices.Contains(builtins, id.Ident) {
		c.refuse(tree, id, "%s", unknownFunctionText(id.Ident))
		return
	}
	if id.Ident != "printf" {
		return
	}
	format, ok := (*parse.StringNode)(nil), false
	if len(args) > 0 {
		format, ok = args[0].(*parse.StringNode)
	}
	if !ok || !isPlainFormat(format.Text) {
		c.refuse(tree, id, "printf needs a format in quotes with no verbs but %%s, %%q, %%d, %%v and %%%%, without width or precision")
	}
}

func unknownFunctionText(name string) string {
	return fmt.Sprintf("there is no function %q; %s", name, nearest.Hint(name, functionNames()))
}

// unknownFieldText returns the error text for a field that the data does not have there.
func unknownFieldText(name string) string {
	whole := templateData(pipeline.Notification{})
	parts := slices.Concat(slices.Collect(maps.Keys(diffData([]pipeline.Diff{{}})[0])),
		slices.Collect(maps.Keys(itemData([]pipeline.Item{{}}, nil)[0])), slices.Collect(maps.Keys(healthData(&pipeline.Health{}))))
	if _, ok := whole[name]; ok {
		return fmt.Sprintf("there is no field .%s here; within range and with write $.%s", name, name)
	}
	if slices.Contains(parts, name) {
		return fmt.Sprintf("there is no field .%s here; it belongs to .diffs, .items or .health", name)
	}
	return fmt.Sprintf("there is no field %q; %s", name, nearest.Hint(name, slices.AppendSeq(parts, maps.Keys(whole))))
}

// isPlainFormat reports whether format has only verbs without width, precision and flags.
func isPlainFormat(format string) bool {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		if i++; i == len(format) || !slices.Contains([]byte("sqdv%"), format[i]) {
			return false
		}
	}
	return true
}

// openAction is an action that needs an {{end}}, and its line.
type openAction struct {
	text string
	line int
}

// findUnclosed returns the action of source that lacks its {{end}}, or "". text/template reports
// only the end of the source.
func findUnclosed(source string) string {
	var open []openAction
	for at := 0; ; {
		begin := strings.Index(source[at:], "{{")
		if begin < 0 {
			break
		}
		begin += at
		end := actionEnd(source, begin)
		if end < 0 {
			return "" // the action is incomplete, which text/template reports
		}
		body := strings.TrimSpace(strings.TrimPrefix(source[begin+2:end-2], "-"))
		word, _, _ := strings.Cut(strings.TrimSuffix(body, "-"), " ")
		switch strings.TrimSpace(word) {
		case "if", "range", "with", "block", "define":
			open = append(open, openAction{source[begin:end], 1 + strings.Count(source[:begin], "\n")})
		case "end":
			if len(open) == 0 {
				return ""
			}
			open = open[:len(open)-1]
		}
		at = end
	}
	if len(open) == 0 {
		return ""
	}
	last := open[len(open)-1]
	return fmt.Sprintf("line %d: %s has no {{end}}; write one where it ends", last.line, render.Short(render.Clean(last.text), 60))
}

// actionEnd returns the index after the }} of the action that begins at begin, or -1 if there is
// none.
func actionEnd(source string, begin int) int {
	quote := byte(0)
	if body := strings.TrimLeft(source[begin+2:], "- "); strings.HasPrefix(body, "/*") {
		comment := strings.Index(source[begin:], "*/")
		if comment < 0 {
			return -1
		}
		begin += comment
	}
	for i := begin + 2; i < len(source); i++ {
		c := source[i]
		switch {
		case quote != 0 && quote != '`' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '`' || c == '\'':
			quote = c
		case strings.HasPrefix(source[i:], "}}"):
			return i + 2
		}
	}
	return -1
}
