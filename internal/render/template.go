package render

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// maxSource bounds the source of a template, in bytes.
const maxSource = 16 << 10

// Template is the template of a sink. The zero value is none. It is safe for concurrent use.
type Template struct{ parsed *parsed }

type parsed struct {
	tmpl *template.Template
	err  error
}

// NewTemplate returns the template that source says. What is wrong with it is told by Validate;
// an empty source is the zero Template.
func NewTemplate(source string) Template {
	if source == "" {
		return Template{}
	}
	tmpl, err := compile(source)
	return Template{&parsed{tmpl, err}}
}

// CompileTemplate returns the template that stands in the field of a Config, or a *pipeline.FieldError
// that says what is wrong with it.
func CompileTemplate(field string, source registry.Template) (Template, error) {
	t := NewTemplate(string(source))
	if err := t.Validate(); err != nil {
		return Template{}, &pipeline.FieldError{Field: field, Reason: err.Error()}
	}
	return t, nil
}

// IsZero reports whether there is no template.
func (t Template) IsZero() bool { return t.parsed == nil }

// Validate returns why the template cannot be used; nil for the zero Template.
func (t Template) Validate() error {
	if t.parsed == nil {
		return nil
	}
	return t.parsed.err
}

// name stands for the template in the errors of text/template.
const templateName = "template"

// compile reads and checks source, and makes its loops stoppable.
func compile(source string) (*template.Template, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("the template has %d bytes; at most %d are allowed", len(source), maxSource)
	}
	t, err := template.New(templateName).Option("missingkey=error").Funcs(functions).Parse(source)
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
	place   = regexp.MustCompile(`^template: ` + templateName + `:(\d+)(?::\d+)?: (?:executing "[^"]*" )?`)
	unknown = regexp.MustCompile(`function "([^"]*)" not defined$`)
	iterate = regexp.MustCompile(`(?s)(range can't iterate over).*`) // a value, which may be page text
)

// explain returns an error of text/template in our words: where, then what.
func explain(err error) error {
	text := place.ReplaceAllString(err.Error(), "line $1: ")
	text = unknown.ReplaceAllStringFunc(text, func(m string) string { return noFunction(unknown.FindStringSubmatch(m)[1]) })
	text = iterate.ReplaceAllString(text, "$1 a text")
	return errors.New(Short(Clean(text), 300))
}
