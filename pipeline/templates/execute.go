package templates

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

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Limits of one execution.
const (
	maxOutput = 64 << 10 // bytes
	maxWrites = 100_000  // iterations and printed values
	maxTime   = 2 * time.Second
)

// Execute executes the template on n and trims the result.
func (p *program) Execute(ctx context.Context, n pipeline.Notification, how render.PrintOptions) (text string, err error) {
	if p.err != nil {
		return "", p.err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	tmpl, err := p.tmpl.Clone()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	w := &limitedWriter{ctx: ctx, max: cmp.Or(how.Max, maxOutput)}
	if err := tmpl.Funcs(printer(how).functions()).Execute(w, templateData(n)); err != nil {
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

// printer writes the values that a template prints.
type printer render.PrintOptions

// functions returns the functions that instrument puts into the template.
func (p printer) functions() template.FuncMap {
	m := template.FuncMap{sinkEscape: p.printValue, sinkEscape + "json": func(v any) (any, error) {
		text, err := render.JSON(v)
		if err != nil || p.JSON {
			return text, err
		}
		return p.printValue(text)
	}}
	for _, name := range escapeNames {
		m[sinkEscape+name] = p.printValue
		if written := escapeFuncs[name]; p.Escape == nil || p.ComposesEscapes {
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
func (p printer) printValue(v any) (any, error) {
	switch s := v.(type) {
	case string:
		if p.Escape != nil {
			return limitSize(p.Escape(s))
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
