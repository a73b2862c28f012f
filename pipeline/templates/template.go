// Package templates makes the templates with which sinks lay out their messages, from sources in the syntax of
// text/template. The documentation of the sinks describes their functions and names. Programs that do not import it do
// not link text/template, which calls methods by name: the linker then has to keep every exported method of the program.
package templates

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"github.com/vokter/vokter/internal/render"
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
