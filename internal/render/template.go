package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"regexp"
	"strings"
	"text/template"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// maxSource is the largest source of a template, in bytes.
const maxSource = 16 << 10

// Template is the template of a sink. The zero value is none. It is safe for concurrent use.
type Template struct{ compiled *compiled }

type compiled struct {
	tmpl *template.Template
	err  error
}

// NewTemplate compiles source. Validate reports what is wrong with it; an empty source is the zero
// Template.
func NewTemplate(source string) Template {
	if source == "" {
		return Template{}
	}
	tmpl, err := compile(source)
	return Template{&compiled{tmpl, err}}
}

// CompileTemplate compiles the template in a field of a Config. A mistake is a
// *pipeline.FieldError.
func CompileTemplate(field string, source registry.Template) (Template, error) {
	t := NewTemplate(string(source))
	if err := t.Validate(); err != nil {
		return Template{}, &pipeline.FieldError{Field: field, Reason: err.Error()}
	}
	return t, nil
}

// IsZero reports whether there is no template.
func (t Template) IsZero() bool { return t.compiled == nil }

// Validate returns the mistake in the template, or nil.
func (t Template) Validate() error {
	if t.compiled == nil {
		return nil
	}
	return t.compiled.err
}

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
	return errors.New(Short(Clean(text), 300))
}

// Body is a template for the whole body of a request. The zero value is none.
type Body struct {
	text    Template
	options printOptions
	json    bool
}

// CompileBody compiles the template in a field of a Config for bodies of this media type. It
// tries the template on one notification of each sort and on one of a hostile page. A mistake
// is a *pipeline.FieldError.
func CompileBody(field string, source registry.Template, mediaType string) (Body, error) {
	text, err := CompileTemplate(field, source)
	if err != nil {
		return Body{}, err
	}
	b := Body{text: text, options: printOptions{composesEscapes: true, max: maxBody}}
	kind, _, err := mime.ParseMediaType(mediaType)
	switch {
	case err != nil:
		return Body{}, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%q is not a media type", mediaType)}
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		b.json, b.options.escape, b.options.json = true, escapeJSON, true
	case kind == "application/x-www-form-urlencoded":
		b.options.escape = url.QueryEscape
	case strings.HasSuffix(kind, "/xml"), strings.HasSuffix(kind, "+xml"), kind == "text/html":
		b.options.escape = HTML
	}
	for _, s := range samples() {
		if _, err := b.render(context.Background(), s.notification); err != nil {
			return Body{}, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("fails for %s: %v", s.name, err)}
		}
	}
	return b, nil
}

// IsZero reports whether there is no template.
func (b Body) IsZero() bool { return b.text.IsZero() }

// Render returns the body for n, or an error if the template fails for n.
func (b Body) Render(ctx context.Context, n pipeline.Notification) (string, error) {
	text, err := b.render(ctx, n)
	if err == nil || errors.Is(err, context.Canceled) { // a cancelled attempt does not count
		return text, err
	}
	return "", failure.Refused(fmt.Errorf("the template of the body failed: %w", err))
}

func (b Body) render(ctx context.Context, n pipeline.Notification) (string, error) {
	text, err := b.text.execute(ctx, n, b.options)
	if err != nil || !b.json {
		return text, err
	}
	return text, checkJSON(text)
}

// checkJSON returns an error that says where text is invalid JSON. It quotes at most one
// character, because a body may hold secrets.
func checkJSON(text string) error {
	var v json.RawMessage
	err := json.Unmarshal([]byte(text), &v)
	if err == nil {
		return nil
	}
	line := ""
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		line = fmt.Sprintf(" in line %d of what it makes", 1+strings.Count(text[:min(int(e.Offset), len(text))], "\n"))
	}
	return fmt.Errorf("the body is no JSON%s: %s; write values as {{json .title}}, without quotes around", line, Short(Clean(err.Error()), 100))
}

// escapeJSON escapes s for use inside a JSON string.
func escapeJSON(s string) string {
	quoted, err := encode(s)
	if err != nil {
		return "" // s is larger than a body can be
	}
	return quoted[1 : len(quoted)-1]
}
