package outbound

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// Endpoint is the URL that a sink posts to. It is safe for concurrent use.
type Endpoint struct {
	url    *url.URL
	sender Sender
}

// minSegment is the length from which a path segment counts as a token.
const minSegment = 16

// NewEndpoint returns the endpoint u, to which sender sends. The body of an answer decides
// whether a notification is delivered, unless StatusDecides is called. Its errors contain
// neither secrets nor the parts of u that only the receiver should see.
func NewEndpoint(u *url.URL, sender Sender, secrets ...string) *Endpoint {
	e := &Endpoint{url: u, sender: sender}
	e.sender.BodyDecides = true
	e.sender.Secrets.AddURL(u)
	e.sender.Secrets.Add(secrets...)
	for segment := range strings.SplitSeq(u.Path, "/") {
		if len(segment) >= minSegment {
			e.sender.Secrets.Add(segment)
		}
	}
	for _, values := range u.Query() {
		e.sender.Secrets.Add(values...)
	}
	return e
}

// Host returns the host of e, with its port.
func (e *Endpoint) Host() string { return e.url.Host }

// StatusDecides makes the status alone decide whether a notification is delivered.
func (e *Endpoint) StatusDecides() *Endpoint {
	e.sender.BodyDecides = false
	return e
}

// Posting returns a function that posts a body to e and returns the verdict about the answer.
func (e *Endpoint) Posting(verdict func(*Answer) error) func(context.Context, []byte) error {
	return func(ctx context.Context, body []byte) error {
		return e.Send(ctx, http.MethodPost, e.url, nil, body, verdict)
	}
}

// Send sends body as Do does, and returns the verdict about the answer.
func (e *Endpoint) Send(ctx context.Context, method string, u *url.URL, h http.Header, body []byte, verdict func(*Answer) error) error {
	a, err := e.Do(ctx, method, u, h, body)
	if err != nil {
		return err
	}
	return verdict(a)
}

// maxReceiverText limits the text of a receiver in an error, in runes.
const maxReceiverText = 200

// Because adds the receiver's reason to err. The class of err stays.
func (e *Endpoint) Because(err error, reason string) error {
	if reason = e.sender.Secrets.Clean(render.Clean(reason)); err == nil || reason == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, render.Short(reason, maxReceiverText))
}

// Limit marks err as a limit of the receiver. The next attempt is made after seconds, from the
// body of a, or at the time in its header if that is later, but after a day at the latest.
func Limit(err error, a *Answer, seconds float64) error {
	return a.Limit(err, time.Duration(max(0, min(seconds, MaxRetryAfter.Seconds()))*float64(time.Second)))
}

// Insist sends rich. If the receiver refuses it, Insist sends the result of plain, so that a
// bad layout loses no notification.
func Insist(ctx context.Context, send func(context.Context, []byte) error, rich []byte, plain func() []byte) error {
	err := send(ctx, rich)
	if class, _ := failure.ClassOf(err); class != failure.ClassRefused {
		return err
	}
	if again := send(ctx, plain()); again != nil {
		return again
	}
	pipeline.AttemptFrom(ctx).Degraded("delivered as plain text, since its layout was refused: " + err.Error())
	return nil
}

// JSON returns v, all of whose fields can be encoded, as JSON without escapes for HTML.
func JSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("outbound: %v", err)) // cannot happen: every field can be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Do sends body, which is JSON, to u with the additional headers h, and returns the answer,
// whatever its status. The endpoint must know all secrets in u.
func (e *Endpoint) Do(ctx context.Context, method string, u *url.URL, h http.Header, body []byte) (*Answer, error) {
	all := http.Header{"Content-Type": {"application/json"}}
	maps.Copy(all, h)
	return e.sender.Do(ctx, method, u, all, body)
}

// Token reports whether s can be a token in a header: visible characters of ASCII only.
func Token(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Read parses JSON. It returns the zero value if body does not fit T.
func Read[T any](body []byte) T {
	var v, none T
	if json.Unmarshal(body, &v) != nil {
		return none
	}
	return v
}

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
