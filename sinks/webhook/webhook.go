// Package webhook is the sink that posts notifications as JSON to a URL, signed as
// Standard Webhooks 1.0 prescribes (https://www.standardwebhooks.com).
package webhook

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/internal/guard"
	"github.com/vokter/vokter/pipeline"
)

// userAgent is what a Webhook calls itself.
const userAgent = "vokter (+https://github.com/vokter/vokter)"

// Bounds of the reading of an answer's body, which serves only to use the connection
// again.
const (
	drainBytes = 64 << 10
	drainFor   = time.Second
)

// Webhook posts notifications to one URL. It is safe for concurrent use.
type Webhook struct {
	url     *url.URL
	keys    []key
	allow   []netip.Prefix
	roots   *x509.CertPool
	client  *http.Client
	scrub   scrubber
	now     func() time.Time
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
		w.scrub.add(secret)
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
	return func(w *Webhook) { w.client = c }
}

// New returns a Webhook that posts to rawURL, an http or https URL. A URL or secret that
// is not valid is reported by Validate, and by Deliver as a permanent error.
func New(rawURL string, opts ...Option) *Webhook {
	w := &Webhook{now: time.Now}
	u, err := parseURL(rawURL)
	if err != nil {
		w.invalid = append(w.invalid, &pipeline.FieldError{Field: "url", Reason: err.Error()})
	} else {
		w.url = u
		w.scrub.addURL(u)
	}
	for _, opt := range opts {
		opt(w)
	}
	if w.client == nil {
		w.client = guard.NewClient(guard.Config{Allow: w.allow, RootCAs: w.roots})
	}
	return w
}

// parseURL never quotes raw in its errors, since it may hold a secret.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return nil, errors.New("a URL is needed")
	case err != nil:
		return nil, errors.New("this is not a URL; write one such as https://example.com/hook")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the URL must begin with https:// or http://")
	case u.Hostname() == "":
		return nil, errors.New("the URL has no host; write one such as https://example.com/hook")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The transport may report this after Do returned, from another goroutine.
	var wrote atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { wrote.Store(i.Err == nil) },
	})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, w.url.String(), bytes.NewReader(body))
	if err != nil {
		return pipeline.Permanent(w.scrub.wrap("making the request", err))
	}
	w.setHeader(req.Header, n.ID, body)
	resp, err := w.client.Do(req)
	if err != nil {
		return w.failure(ctx, err, wrote.Load())
	}
	defer resp.Body.Close()
	defer time.AfterFunc(drainFor, cancel).Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
	return statusError(resp, w.now())
}

func (w *Webhook) setHeader(h http.Header, id string, body []byte) {
	at := w.now()
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", userAgent)
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	if len(w.keys) > 0 {
		h.Set("webhook-signature", signatures(w.keys, id, at, body))
	}
}
