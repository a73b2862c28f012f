package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// maxBody is the largest body, and the largest value in JSON, in bytes.
const maxBody = 1 << 20

// Body is a template for the whole body of a request. The zero value is none.
type Body struct {
	text    Template
	options PrintOptions
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
	b := Body{text: text, options: PrintOptions{ComposesEscapes: true, Max: maxBody}}
	kind, _, err := mime.ParseMediaType(mediaType)
	switch {
	case err != nil:
		return Body{}, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%q is not a media type", mediaType)}
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		b.json, b.options.Escape, b.options.JSON = true, escapeJSON, true
	case kind == "application/x-www-form-urlencoded":
		b.options.Escape = url.QueryEscape
	case strings.HasSuffix(kind, "/xml"), strings.HasSuffix(kind, "+xml"), kind == "text/html":
		b.options.Escape = HTML
	}
	for _, s := range Samples() {
		if _, err := b.render(context.Background(), s.Notification); err != nil {
			return Body{}, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("fails for %s: %v", s.Name, err)}
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
	text, err := b.text.program.Execute(ctx, n, b.options)
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
	quoted, err := JSON(s)
	if err != nil {
		return "" // s is larger than a body can be
	}
	return quoted[1 : len(quoted)-1]
}

var errLargeJSON = errors.New("the result has more than 1 MB")

// JSON returns v, a text, number, list or mapping, as JSON. It has no escapes for HTML.
func JSON(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	if b.Len() > maxBody {
		return "", errLargeJSON
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
