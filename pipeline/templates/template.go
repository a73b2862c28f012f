// Package templates makes the templates with which sinks lay out their messages, from sources in the syntax of
// text/template. The documentation of the sinks describes their functions and names. Programs that do not import it do
// not link text/template, which calls methods by name: the linker then has to keep every exported method of the program.
package templates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// maxSource is the largest source of a template, in bytes.
const maxSource = 16 << 10

// New returns the template of source, for the Config of a sink, or nil if source is empty. The sink's New returns the
// mistake in it.
func New(source string) registry.Template {
	if source == "" {
		return nil
	}
	tmpl, err := compile(source)
	return &program{tmpl, err}
}

// program is a template that was compiled, or the mistake in it. It is safe for concurrent use.
type program struct {
	tmpl *template.Template
	err  error
}

var _ render.Program = (*program)(nil)

// Validate returns the mistake in the template, or nil.
func (p *program) Validate() error { return p.err }

// templateName is the name of the template in errors of text/template.
const templateName = "template"

// compile parses and checks source, and rewrites its loops so that they can be stopped.
func compile(source string) (*template.Template, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("the template has %d bytes; at most %d are allowed", len(source), maxSource)
	}
	t, err := template.New(templateName).Option("missingkey=error").Funcs(functions).Parse(source)
	if err != nil {
		if open := findUnclosed(source); open != "" && strings.HasSuffix(err.Error(), "unexpected EOF") {
			return nil, errors.New(open)
		}
		return nil, plainError(err)
	}
	if err := check(t); err != nil {
		return nil, err
	}
	for _, part := range t.Templates() {
		instrument(part.Root)
	}
	return t, nil
}

var (
	positionPattern = regexp.MustCompile(`^template: ` + templateName + `:(\d+)(?::\d+)?: (?:executing "[^"]*" )?`)
	unknownFunction = regexp.MustCompile(`function "([^"]*)" not defined$`)
	missingField    = regexp.MustCompile(`at <[^>]*>: map has no entry for key "([^"]*)"$`)
	badRange        = regexp.MustCompile(`(?s)(range can't iterate over).*`) // a value, which may be page text
)

// plainError rewrites an error of text/template: the line first, then what is wrong.
func plainError(err error) error {
	text := positionPattern.ReplaceAllString(err.Error(), "line $1: ")
	text = unknownFunction.ReplaceAllStringFunc(text, func(m string) string { return unknownFunctionText(unknownFunction.FindStringSubmatch(m)[1]) })
	text = missingField.ReplaceAllStringFunc(text, func(m string) string { return unknownFieldText(missingField.FindStringSubmatch(m)[1]) })
	text = badRange.ReplaceAllString(text, "$1 a string")
	return errors.New(render.Short(render.Clean(text), 300))
}

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
