// Package email is the sink that sends notifications by SMTP, with a text and an HTML part.
package email

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"time"

	"github.com/vokter/vokter/internal/guard"
	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// timeout bounds an attempt whose context has no earlier deadline.
const timeout = time.Minute

// Email sends notifications to one recipient, each over a connection of its own. It is
// safe for concurrent use.
type Email struct {
	cfg         Config
	from, to    *mail.Address
	unsubscribe *url.URL
	allow       []netip.Prefix
	dialer      *net.Dialer
	tls         *tls.Config
	secrets     post.Scrubber
	now         func() time.Time
}

var _ pipeline.Sink = (*Email)(nil)

// Option alters an Email.
type Option func(*Email)

// Allow permits networks besides public addresses.
func Allow(networks ...netip.Prefix) Option {
	return func(e *Email) { e.allow = append(e.allow, networks...) }
}

// RootCAs are the authorities to trust in place of the system's.
func RootCAs(pool *x509.CertPool) Option {
	return func(e *Email) { e.tls.RootCAs = pool }
}

// Build returns the sink, or the *pipeline.FieldErrors that say what is wrong.
func (c Config) Build(opts ...Option) (*Email, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	e := &Email{cfg: c, tls: &tls.Config{ServerName: c.Host, MinVersion: tls.VersionTLS12}, now: time.Now}
	e.from, _ = parseAddress(c.From) // validated
	e.to, _ = parseAddress(c.To)
	e.unsubscribe, _ = parseUnsubscribe(c.ListUnsubscribe)
	for _, opt := range opts {
		opt(e)
	}
	e.dialer = guard.NewDialer(guard.Config{Allow: e.allow})
	if password := c.Password.Reveal(); password != "" {
		e.secrets.Add(password,
			base64.StdEncoding.EncodeToString([]byte("\x00"+c.Username+"\x00"+password)), // as PLAIN says it
			base64.StdEncoding.EncodeToString([]byte(password)))                          // as LOGIN does
	}
	return e, nil
}

// Register makes the configuration know the kind of sink "email".
func Register(r *registry.Registry) {
	r.Sink("email", func(decode registry.Decode, env registry.Env) (pipeline.Sink, error) {
		var c Config
		if err := decode(&c); err != nil {
			return nil, err
		}
		e, err := c.Build(Allow(env.AllowSinks...))
		if err != nil {
			return nil, err
		}
		return e, nil
	})
}

// idText is what can stand in a Message-ID as it is.
var idText = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

// Deliver sends n. It is delivered when the server has said so after the last byte of the
// message, and not before.
func (e *Email) Deliver(ctx context.Context, n pipeline.Notification) error {
	if !idText.MatchString(n.ID) {
		return pipeline.Permanent(errors.New("the notification's ID is empty, or cannot be that of a message"))
	}
	message, err := e.compose(ctx, n)
	if err != nil {
		return pipeline.Permanent(err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t := &talk{e: e, ctx: ctx}
	defer t.hangUp()
	return t.send(message)
}
