// Package webhook is the sink that posts notifications as JSON to a URL, signed as
// Standard Webhooks 1.0 prescribes (https://www.standardwebhooks.com), and as CloudEvents
// where that is wanted.
//
// Every request is a POST with the headers webhook-id, which is the notification's ID on every
// attempt, webhook-timestamp, which is when the attempt was made, and with a secret
// webhook-signature. What the receiver answers means:
//
//   - 200 to 299: it has the notification.
//   - 400, 413, 414, 415 and 422: it refuses this body. That is tried three times, then it
//     goes to the dead letters, and the next one follows.
//   - 410: it does not exist any more. The receiver is expired, with a health event.
//   - 300 to 399: a failure. Redirects are not followed; the reason names the host where this
//     one leads.
//   - Anything else, and no answer: it is sent again by the schedule, and later notifications
//     wait. After three failures in a row there is a health event; of a certificate that does
//     not hold there is one at once.
//
// With any failure the header Retry-After, as seconds or a date, says how long nothing more is
// to be sent, for a day at most.
//
// With verify: true a new receiver is asked first whether it is meant:
//
//	POST /in HTTP/1.1
//	Content-Type: application/json
//	webhook-id: verification_IYT5VCGHSK7DBHAE4WPG6ZYXRM
//
//	{"type":"verification","challenge":"IYT5VCGHSK7DBHAE4WPG6ZYXRM"}
//
// It answers with a status from 200 to 299 and IYT5VCGHSK7DBHAE4WPG6ZYXRM alone, as text or as
// {"challenge":"IYT5VCGHSK7DBHAE4WPG6ZYXRM"}. Until it does, that is a failure like others, and
// nothing but the question is sent. A receiver that sends back whatever it gets proves nothing.
package webhook

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/pipeline"
)

// Webhook posts notifications to one URL. It is safe for concurrent use.
type Webhook struct {
	url     *url.URL
	keys    []key
	headers http.Header
	bearer  string
	// format is one of the Format constants, mode one of the Mode constants or empty.
	format, mode string
	idempotent   bool
	verify       bool
	proved       atomic.Bool // the receiver did, in this process
	allow        []netip.Prefix
	roots        *x509.CertPool
	post         post.Sender
	invalid      []error
}

var _ pipeline.Sink = (*Webhook)(nil)

// Option alters a Webhook.
type Option func(*Webhook)

// Secret signs every attempt with secret: "whsec_" and base64, or any other text as it
// is. Given several times, each attempt carries a signature for each, so that a secret
// can be replaced while both are known to the receiver. The empty secret signs nothing.
func Secret(secret string) Option { return secretOf("secret", secret) }

// secretOf names the field of the configuration that the secret stands in.
func secretOf(field, secret string) Option {
	return func(w *Webhook) {
		if secret == "" {
			return
		}
		k, err := parseKey(secret)
		if err != nil {
			w.fail(field, err)
			return
		}
		w.keys = append(w.keys, k)
		w.post.Secrets.Add(secret)
	}
}

// Format is what the body says: FormatDocumented, which is the default, FormatV1 or
// FormatCloudEvents.
func Format(format string) Option {
	return func(w *Webhook) {
		w.format = format
		if all := []string{FormatDocumented, FormatV1, FormatCloudEvents}; !slices.Contains(all, format) {
			w.fail("format", fmt.Errorf("%q is no format; write one of %s", format, strings.Join(all, ", ")))
		}
	}
}

// Mode is how FormatCloudEvents is sent: ModeStructured, which is the default, or ModeBinary.
func Mode(mode string) Option {
	return func(w *Webhook) {
		w.mode = mode
		if mode != ModeStructured && mode != ModeBinary {
			w.fail("mode", fmt.Errorf("%q is no mode; write one of %s, %s", mode, ModeStructured, ModeBinary))
		}
	}
}

// IdempotencyKey also sends the notification's ID as Idempotency-Key, as
// draft-ietf-httpapi-idempotency-key-header-07 says. With it a request whose kept-alive
// connection breaks is sent once more within the attempt.
func IdempotencyKey() Option {
	return func(w *Webhook) { w.idempotent = true }
}

// Verify sends nothing to a receiver that has not proved that it wants it; see
// Config.Verify.
func Verify() Option {
	return func(w *Webhook) { w.verify = true }
}

// Allow permits networks besides public addresses.
func Allow(networks ...netip.Prefix) Option {
	return func(w *Webhook) { w.allow = append(w.allow, networks...) }
}

// RootCAs are the authorities to trust in place of the system's.
func RootCAs(pool *x509.CertPool) Option {
	return func(w *Webhook) { w.roots = pool }
}

// withClient makes webhooks share their connections. The client has to be one of
// package guard.
func withClient(c *http.Client) Option {
	return func(w *Webhook) { w.post.Client = c }
}

// New returns a Webhook that posts to rawURL, an http or https URL. A URL or option that
// is not valid is reported by Validate, and by Deliver as a permanent error.
func New(rawURL string, opts ...Option) *Webhook {
	w := &Webhook{format: FormatDocumented, headers: make(http.Header), post: post.Sender{Now: time.Now}}
	u, err := post.ParseURL(rawURL, "https://example.com/hook")
	if err != nil {
		w.fail("url", err)
	} else {
		w.url = u
		w.post.Secrets.AddURL(u)
	}
	for _, opt := range opts {
		opt(w)
	}
	w.checkAuthorization()
	if w.mode != "" && (w.format == FormatDocumented || w.format == FormatV1) {
		w.fail("mode", errors.New("it belongs to format: cloudevents; add that, or leave mode out"))
	}
	if w.post.Client == nil {
		w.post.Client = post.NewClient(w.allow, w.roots)
	}
	return w
}

// fail notes what is wrong with a field of Config.
func (w *Webhook) fail(field string, err error) {
	w.invalid = append(w.invalid, &pipeline.FieldError{Field: field, Reason: err.Error()})
}

// Validate returns all that is wrong with the URL and the options, as joined
// *pipeline.FieldErrors, or nil.
func (w *Webhook) Validate() error { return errors.Join(w.invalid...) }

// Batch says that an attempt delivers what waits, one after the other.
func (w *Webhook) Batch() (notifications, atOnce int) { return 100, 1 }

// Deliver posts n. It follows no redirects, and reads no more than 128 KB of the answer.
func (w *Webhook) Deliver(ctx context.Context, n pipeline.Notification) error {
	if err := w.Validate(); err != nil {
		return pipeline.Permanent(err)
	}
	if checkValue(n.ID) != nil || strings.Contains(n.ID, ".") { // a dot ends the ID in what is signed
		return pipeline.Permanent(errors.New("the notification's ID is empty, has a dot, or cannot stand in a header"))
	}
	body, h, err := w.encode(n)
	if err != nil {
		return err
	}
	if w.verify {
		if err := w.prove(ctx); err != nil {
			return err
		}
	}
	answer, err := w.send(ctx, w.post, n.ID, h, body)
	if err != nil {
		return err
	}
	return answer.Err()
}

// send posts body by sender with h, which is that of body alone, under id.
func (w *Webhook) send(ctx context.Context, sender post.Sender, id string, h http.Header, body []byte) (*post.Answer, error) {
	maps.Copy(h, w.headers)
	at := w.post.Now()
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	if len(w.keys) > 0 {
		h.Set("webhook-signature", signatures(w.keys, id, at, body))
	}
	if w.bearer != "" {
		h.Set("Authorization", "Bearer "+w.bearer)
	}
	if w.idempotent {
		h.Set("Idempotency-Key", quoted(id))
	}
	return sender.Do(ctx, http.MethodPost, w.url, h, body)
}
