package outbound

import (
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"net/url"
	"slices"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Mistakes collects what is wrong with the Config of a sink, so that New reports all of it at
// once. The zero value holds none.
type Mistakes struct{ errs []error }

// Add reports that the value of field is wrong. It does nothing if err is nil.
func (m *Mistakes) Add(field string, err error) {
	if err != nil {
		m.errs = append(m.errs, &pipeline.FieldError{Field: field, Reason: err.Error()})
	}
}

// Addf is Add for an error with this text.
func (m *Mistakes) Addf(field, format string, args ...any) { m.Add(field, fmt.Errorf(format, args...)) }

// Join adds an error that names its fields itself, as those of package render do. It does
// nothing if err is nil.
func (m *Mistakes) Join(err error) { m.errs = append(m.errs, err) }

// Err returns the joined *pipeline.FieldErrors, or nil if there are none.
func (m *Mistakes) Err() error { return errors.Join(m.errs...) }

// Headers adds what check says is wrong with headers, by their names, and calls set with the others.
func Headers[V any](m *Mistakes, headers map[string]V, check func(name string, value V) error, set func(name string, value V)) {
	seen := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		field, canonical := "headers."+name, textproto.CanonicalMIMEHeaderKey(name)
		if err := check(name, headers[name]); err != nil {
			m.Add(field, err)
		} else if seen[canonical] {
			m.Addf(field, "the header is set twice, in two spellings")
		} else {
			set(name, headers[name])
		}
		seen[canonical] = true
	}
}

// URL parses the http or https URL in field. It returns nil after a mistake.
func (m *Mistakes) URL(field string, value registry.Secret, example string) *url.URL {
	u, err := ParseURL(value.Reveal(), example)
	m.Add(field, err)
	return u
}

// Sender returns the Sender for c.
func (m *Mistakes) Sender(c registry.Connection) Sender {
	s, err := newSender(c)
	m.Join(err)
	return s
}

// Template compiles the template in field.
func (m *Mistakes) Template(field string, source registry.Template) render.Template {
	t, err := render.CompileTemplate(field, source)
	m.Join(err)
	return t
}

// Unset reports the optional secret in field if it was made of an empty text: without it the sink would work, but
// not as it was meant to.
func (m *Mistakes) Unset(field string, secret registry.Secret) {
	if secret.IsUnset() {
		m.Addf(field, "it is empty; give it a value (is an environment variable not set?), or leave the field out")
	}
}

// Token checks a token that is sent in a header.
func (m *Mistakes) Token(field string, token registry.Secret) {
	if !Token(token.Reveal()) {
		m.Addf(field, "a token consists of visible ASCII characters without spaces; check what was copied")
	}
}
