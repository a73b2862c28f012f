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

// Bounds of one execution.
const (
	maxOutput = 64 << 10 // bytes
	maxBody   = 1 << 20  // bytes of what is the whole body of a request
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
	text, err := t.execute(ctx, n, printing{escape: escape})
	if err == nil {
		return text, true
	}
	if !errors.Is(err, context.Canceled) { // the attempt is as if it had not begun
		pipeline.AttemptFrom(ctx).Degraded("the template failed: " + err.Error())
	}
	return "", false
}

func (t Template) execute(ctx context.Context, n pipeline.Notification, how printing) (text string, err error) {
	if t.parsed.err != nil {
		return "", t.parsed.err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	tmpl, err := t.parsed.tmpl.Clone()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	w := &writer{ctx: ctx, max: cmp.Or(how.max, maxOutput)}
	if err := tmpl.Funcs(how.functions()).Execute(w, data(n)); err != nil {
		if w.err != nil {
			return "", w.err
		}
		return "", explain(err)
	}
	text = strings.TrimSpace(w.out.String())
	if text == "" {
		return "", errors.New("it says nothing")
	}
	return text, nil
}

// printing is how the values that a template prints are written.
type printing struct {
	// escape makes a value literal for the receiver; nil: it is printed as it is.
	escape func(string) string
	// composed says that escapes which the operator has written count as well, before escape. In
	// a sink with markup of its own they do not: escape is what they stand for there.
	composed bool
	// max is how many bytes it says at most; 0: maxOutput.
	max int
	// json says that what json returns is not escaped.
	json bool
}

// functions returns the functions that rewrite has put into the template.
func (p printing) functions() template.FuncMap {
	m := template.FuncMap{bySink: p.print, bySink + "json": func(v any) (any, error) {
		text, err := encode(v)
		if err != nil || p.json {
			return text, err
		}
		return p.print(text)
	}}
	for _, name := range escapes {
		m[bySink+name] = p.print
		if written := escapers[name]; p.escape == nil || p.composed {
			m[bySink+name] = func(s string) (any, error) {
				text, err := bounded(written(s))
				if err != nil {
					return nil, err
				}
				return p.print(text)
			}
		}
	}
	return m
}

// print is the function that a printed value goes through.
func (p printing) print(v any) (any, error) {
	switch s := v.(type) {
	case string:
		if p.escape != nil {
			return bounded(p.escape(s))
		}
		return s, nil
	case int, float64, bool:
		return v, nil
	}
	return nil, errors.New("only texts, numbers, true and false can be printed; json prints lists and mappings")
}

// writer keeps what is written, and fails when an execution has gone on for too long.
type writer struct {
	ctx    context.Context
	max    int // bytes
	out    strings.Builder
	writes int
	err    error
}

func (w *writer) Write(p []byte) (int, error) {
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

// rewrite puts an empty text first into each loop of l, so that each iteration meets the
// writer, which ends an execution that has gone on for too long; and gives what is
// printed to the escape function of the sink.
func rewrite(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			escape(n.Pipe)
		case *parse.IfNode:
			rewrite(n.List)
			rewrite(n.ElseList)
		case *parse.WithNode:
			rewrite(n.List)
			rewrite(n.ElseList)
		case *parse.RangeNode:
			rewrite(n.List)
			rewrite(n.ElseList)
			tick := &parse.TextNode{NodeType: parse.NodeText, Pos: n.Pos}
			n.List.Nodes = slices.Insert(n.List.Nodes, 0, parse.Node(tick))
		}
	}
}

// escape appends the sink's escape function to what p prints, or puts it in the place of
// the one that the operator has put there.
func escape(p *parse.PipeNode) {
	if len(p.Decl) > 0 {
		return // nothing is printed
	}
	last := p.Cmds[len(p.Cmds)-1]
	if id, ok := last.Args[0].(*parse.IdentifierNode); ok && (id.Ident == "json" || slices.Contains(escapes, id.Ident)) {
		last.Args[0] = parse.NewIdentifier(bySink + id.Ident).SetPos(id.Pos)
		return
	}
	id := parse.NewIdentifier(bySink).SetPos(p.Pos)
	p.Cmds = append(p.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: p.Pos, Args: []parse.Node{id}})
}
