// Package webhook is the sink that posts notifications as JSON to a URL, signed as
// Standard Webhooks 1.0 prescribes (https://www.standardwebhooks.com).
package webhook

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/pipeline"
)

// Webhook posts notifications to one URL. It is safe for concurrent use.
type Webhook struct {
	url     *url.URL
	keys    []key
	allow   []netip.Prefix
	roots   *x509.CertPool
	post    post.Sender
	invalid []error
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
			w.invalid = append(w.invalid, &pipeline.FieldError{Field: field, Reason: err.Error()})
			return
		}
		w.keys = append(w.keys, k)
		w.post.Secrets.Add(secret)
	}
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

// New returns a Webhook that posts to rawURL, an http or https URL. A URL or secret that
// is not valid is reported by Validate, and by Deliver as a permanent error.
func New(rawURL string, opts ...Option) *Webhook {
	w := &Webhook{post: post.Sender{Now: time.Now}}
	u, err := post.ParseURL(rawURL, "https://example.com/hook")
	if err != nil {
		w.invalid = append(w.invalid, &pipeline.FieldError{Field: "url", Reason: err.Error()})
	} else {
		w.url = u
		w.post.Secrets.AddURL(u)
	}
	for _, opt := range opts {
		opt(w)
	}
	if w.post.Client == nil {
		w.post.Client = post.NewClient(w.allow, w.roots)
	}
	return w
}

// Validate returns all that is wrong with the URL and the secrets, as joined
// *pipeline.FieldErrors, or nil.
func (w *Webhook) Validate() error { return errors.Join(w.invalid...) }

// Deliver posts n. It follows no redirects, and reads no more than 64 KB of the answer.
func (w *Webhook) Deliver(ctx context.Context, n pipeline.Notification) error {
	if err := w.Validate(); err != nil {
		return pipeline.Permanent(err)
	}
	if n.ID == "" || strings.Contains(n.ID, ".") { // a dot ends the ID in what is signed
		return pipeline.Permanent(errors.New("the notification's ID is empty or has a dot"))
	}
	if n.Diffs == nil {
		n.Diffs = []pipeline.Diff{}
	}
	body, err := json.Marshal(n)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("encoding the notification: %w", err))
	}
	answer, err := w.post.Do(ctx, http.MethodPost, w.url, w.header(n.ID, body), body)
	if err != nil {
		return err
	}
	return answer.Err()
}

// header returns the headers of one attempt.
func (w *Webhook) header(id string, body []byte) http.Header {
	at := w.post.Now()
	h := make(http.Header)
	h.Set("Content-Type", "application/json")
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	if len(w.keys) > 0 {
		h.Set("webhook-signature", signatures(w.keys, id, at, body))
	}
	return h
}
