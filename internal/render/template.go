package render

import (
	"context"
	"errors"
	"fmt"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Program is a registry.Template as package templates makes it. It stands here as an interface, so that sinks without a
// template do not link text/template.
type Program interface {
	registry.Template
	// Execute executes the template on n and trims the result.
	Execute(ctx context.Context, n pipeline.Notification, how PrintOptions) (string, error)
}

// PrintOptions says how to write the values that a template prints.
type PrintOptions struct {
	// Escape escapes a value for the receiver. Nil means that values are not escaped.
	Escape func(string) string
	// ComposesEscapes says that escape functions in the template are applied before Escape. In a sink
	// with markup of its own they are replaced by Escape.
	ComposesEscapes bool
	// Max is the largest size of the output, in bytes. 0 means 64 KB.
	Max int
	// JSON says that results of the function json are not escaped.
	JSON bool
}

// Template is the template of a sink. The zero value is none. It is safe for concurrent use.
type Template struct{ program Program }

// CompileTemplate returns the template in a field of a Config. A mistake is a *pipeline.FieldError.
func CompileTemplate(field string, t registry.Template) (Template, error) {
	if t == nil {
		return Template{}, nil
	}
	if err := t.Validate(); err != nil {
		return Template{}, &pipeline.FieldError{Field: field, Reason: err.Error()}
	}
	p, ok := t.(Program)
	if !ok {
		return Template{}, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%T is no template; make one with New of package pipeline/templates", t)}
	}
	return Template{p}, nil
}

// TryTemplate executes t, which is not nil, on all Samples and returns the first error.
func TryTemplate(t registry.Template) error {
	compiled, err := CompileTemplate("template", t)
	if err != nil {
		return t.Validate()
	}
	for _, s := range Samples() {
		if _, err := compiled.program.Execute(context.Background(), s.Notification, PrintOptions{}); err != nil {
			return fmt.Errorf("fails for %s: %w", s.Name, err)
		}
	}
	return nil
}

// IsZero reports whether there is no template.
func (t Template) IsZero() bool { return t.program == nil }

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
	text, err := t.program.Execute(ctx, n, PrintOptions{Escape: escape})
	if err == nil {
		return text, true
	}
	if !errors.Is(err, context.Canceled) { // a cancelled attempt does not count
		pipeline.AttemptFrom(ctx).Degraded("the template failed: " + err.Error())
	}
	return "", false
}
