package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Body is a template for the whole body of a request. The zero value is none.
type Body struct {
	text    Template
	printed printing
	json    bool
}

// CompileBody returns the template that stands in the field of a Config, for bodies of this
// media type, or a *pipeline.FieldError that says what is wrong with it. It was tried on one
// notification of each sort, and on one whose page attacks.
func CompileBody(field string, source registry.Template, mediaType string) (Body, error) {
	text, err := CompileTemplate(field, source)
	if err != nil {
		return Body{}, err
	}
	b := Body{text: text, printed: printing{composed: true, max: maxBody}}
	kind, _, err := mime.ParseMediaType(mediaType)
	switch {
	case err != nil:
		return Body{}, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%q is not a media type", mediaType)}
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		b.json, b.printed.escape, b.printed.json = true, inString, true
	case kind == "application/x-www-form-urlencoded":
		b.printed.escape = url.QueryEscape
	case strings.HasSuffix(kind, "/xml"), strings.HasSuffix(kind, "+xml"), kind == "text/html":
		b.printed.escape = HTML
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

// Render returns the body for n. An error says that there is none for n.
func (b Body) Render(ctx context.Context, n pipeline.Notification) (string, error) {
	text, err := b.render(ctx, n)
	if err == nil || errors.Is(err, context.Canceled) { // the latter: the attempt is as if it had not begun
		return text, err
	}
	return "", pipeline.Refused(fmt.Errorf("the template of the body failed: %w", err))
}

func (b Body) render(ctx context.Context, n pipeline.Notification) (string, error) {
	text, err := b.text.execute(ctx, n, b.printed)
	if err != nil || !b.json {
		return text, err
	}
	return text, checkJSON(text)
}

// checkJSON says where text is not JSON. It quotes no more than a character: there may be
// secrets in a body.
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

// inString escapes s for the inside of a string of JSON.
func inString(s string) string {
	quoted, err := encode(s)
	if err != nil {
		return "" // it is larger than a body can be
	}
	return quoted[1 : len(quoted)-1]
}
