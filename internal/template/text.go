// Package template renders notifications with the templates of an operator. They are
// text/template, kept within bounds: what could run for ever, grow without end or reach
// anything but the notification is refused when the template is read, and one that fails
// at run time gives way to the sink's own layout, so that it never costs an alert.
package template

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"github.com/vokter/vokter/internal/layout"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// maxSource bounds the source of a template, in bytes.
const maxSource = 16 << 10

// Text is the template of a sink. The zero value is none. It is safe for concurrent use.
type Text struct{ parsed *parsed }

type parsed struct {
	tmpl *template.Template
	err  error
}

// New returns the template that source says. What is wrong with it is told by Validate;
// an empty source is the zero Text.
func New(source string) Text {
	if source == "" {
		return Text{}
	}
	tmpl, err := compile(source)
	return Text{&parsed{tmpl, err}}
}

// Compile returns the template that stands in the field of a Config, or a *pipeline.FieldError
// that says what is wrong with it.
func Compile(field string, source registry.Template) (Text, error) {
	t := New(string(source))
	if err := t.Validate(); err != nil {
		return Text{}, &pipeline.FieldError{Field: field, Reason: err.Error()}
	}
	return t, nil
}

// IsZero reports whether there is no template.
func (t Text) IsZero() bool { return t.parsed == nil }

// Validate returns why the template cannot be used; nil for the zero Text.
func (t Text) Validate() error {
	if t.parsed == nil {
		return nil
	}
	return t.parsed.err
}

// name stands for the template in the errors of text/template.
const name = "template"

// compile reads and checks source, and makes its loops stoppable.
func compile(source string) (*template.Template, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("the template has %d bytes; at most %d are allowed", len(source), maxSource)
	}
	t, err := template.New(name).Option("missingkey=error").Funcs(functions).Parse(source)
	if err != nil {
		if open := unclosed(source); open != "" && strings.HasSuffix(err.Error(), "unexpected EOF") {
			return nil, errors.New(open)
		}
		return nil, explain(err)
	}
	if err := check(t); err != nil {
		return nil, err
	}
	for _, part := range t.Templates() {
		rewrite(part.Root)
	}
	return t, nil
}

var (
	place   = regexp.MustCompile(`^template: ` + name + `:(\d+)(?::\d+)?: (?:executing "[^"]*" )?`)
	unknown = regexp.MustCompile(`function "([^"]*)" not defined$`)
	iterate = regexp.MustCompile(`(?s)(range can't iterate over).*`) // a value, which may be page text
)

// explain returns an error of text/template in our words: where, then what.
func explain(err error) error {
	text := place.ReplaceAllString(err.Error(), "line $1: ")
	text = unknown.ReplaceAllStringFunc(text, func(m string) string { return noFunction(unknown.FindStringSubmatch(m)[1]) })
	text = iterate.ReplaceAllString(text, "$1 a text")
	return errors.New(layout.Short(layout.Clean(text), 300))
}
