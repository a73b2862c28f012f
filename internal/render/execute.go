package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Limits of one execution.
const (
	maxOutput = 64 << 10 // bytes
	maxBody   = 1 << 20  // bytes, if the output is the body of a request
	maxWrites = 100_000  // iterations and printed values
	maxTime   = 2 * time.Second
)

// Render executes the template on n and trims the result. ok is false if there is no template,
// or it failed or printed nothing: then the sink uses its own layout. A failure is recorded in the
// attempt of ctx as degraded.
func (t Template) Render(ctx context.Context, n pipeline.Notification) (text string, ok bool) {
	return t.RenderFor(ctx, n, nil)
}

// RenderFor is Render for a sink whose receiver reads markup: every value that the
// template prints goes through escape, once.
func (t Template) RenderFor(ctx context.Context, n pipeline.Notification, escape func(string) string) (text string, ok bool) {
	if t.IsZero() {
		return "", false
	}
	text, err := t.execute(ctx, n, printOptions{escape: escape})
	if err == nil {
		return text, true
	}
	if !errors.Is(err, context.Canceled) { // a cancelled attempt does not count
		pipeline.AttemptFrom(ctx).Degraded("the template failed: " + err.Error())
	}
	return "", false
}

func (t Template) execute(ctx context.Context, n pipeline.Notification, how printOptions) (text string, err error) {
	if t.compiled.err != nil {
		return "", t.compiled.err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	tmpl, err := t.compiled.tmpl.Clone()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	w := &limitedWriter{ctx: ctx, max: cmp.Or(how.max, maxOutput)}
	if err := tmpl.Funcs(how.functions()).Execute(w, templateData(n)); err != nil {
		if w.err != nil {
			return "", w.err
		}
		return "", plainError(err)
	}
	text = strings.TrimSpace(w.out.String())
	if text == "" {
		return "", errors.New("it says nothing")
	}
	return text, nil
}

// printOptions says how to write the values that a template prints.
type printOptions struct {
	// escape escapes a value for the receiver. Nil means that values are not escaped.
	escape func(string) string
	// composesEscapes says that escape functions in the template are applied before escape. In a sink
	// with markup of its own they are replaced by escape.
	composesEscapes bool
	// max is the largest size of the output, in bytes. 0 means maxOutput.
	max int
	// json says that results of the function json are not escaped.
	json bool
}

// functions returns the functions that instrument puts into the template.
func (p printOptions) functions() template.FuncMap {
	m := template.FuncMap{sinkEscape: p.printValue, sinkEscape + "json": func(v any) (any, error) {
		text, err := encode(v)
		if err != nil || p.json {
			return text, err
		}
		return p.printValue(text)
	}}
	for _, name := range escapeNames {
		m[sinkEscape+name] = p.printValue
		if written := escapeFuncs[name]; p.escape == nil || p.composesEscapes {
			m[sinkEscape+name] = func(s string) (any, error) {
				text, err := limitSize(written(s))
				if err != nil {
					return nil, err
				}
				return p.printValue(text)
			}
		}
	}
	return m
}

// printValue is the function that is applied to each printed value.
func (p printOptions) printValue(v any) (any, error) {
	switch s := v.(type) {
	case string:
		if p.escape != nil {
			return limitSize(p.escape(s))
		}
		return s, nil
	case int, float64, bool:
		return v, nil
	}
	return nil, errors.New("only texts, numbers, true and false can be printed; json prints lists and mappings")
}

// limitedWriter collects the output, and fails when an execution writes too much or too often.
type limitedWriter struct {
	ctx    context.Context
	max    int // bytes
	out    strings.Builder
	writes int
	err    error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	w.writes++
	switch {
	case w.ctx.Err() != nil:
		w.err = fmt.Errorf("it took too long: %w", w.ctx.Err())
	case w.writes > maxWrites:
		w.err = fmt.Errorf("it went on after %d steps", maxWrites)
	case w.out.Len()+len(p) > w.max:
		w.err = fmt.Errorf("it says more than %d KB", w.max>>10)
	default:
		return w.out.Write(p)
	}
	return 0, w.err
}

// instrument puts an empty text at the beginning of each loop of l. So each iteration calls the
// writer, which ends an execution that runs too long. It also applies the escape function of
// the sink to printed values.
func instrument(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			escapePipeline(n.Pipe)
		case *parse.IfNode:
			instrument(n.List)
			instrument(n.ElseList)
		case *parse.WithNode:
			instrument(n.List)
			instrument(n.ElseList)
		case *parse.RangeNode:
			instrument(n.List)
			instrument(n.ElseList)
			tick := &parse.TextNode{NodeType: parse.NodeText, Pos: n.Pos}
			n.List.Nodes = slices.Insert(n.List.Nodes, 0, parse.Node(tick))
		}
	}
}

// escapePipeline appends the sink's escape function to the pipeline p, or replaces the escape function
// at its end.
func escapePipeline(p *parse.PipeNode) {
	if len(p.Decl) > 0 {
		return // nothing is printed
	}
	last := p.Cmds[len(p.Cmds)-1]
	if id, ok := last.Args[0].(*parse.IdentifierNode); ok && (id.Ident == "json" || slices.Contains(escapeNames, id.Ident)) {
		last.Args[0] = parse.NewIdentifier(sinkEscape + id.Ident).SetPos(id.Pos)
		return
	}
	id := parse.NewIdentifier(sinkEscape).SetPos(p.Pos)
	p.Cmds = append(p.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: p.Pos, Args: []parse.Node{id}})
}
