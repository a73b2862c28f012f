// Package email is the sink that sends notifications by SMTP, with a text and an HTML part.
//
// Each notification is one message to one recipient. It is delivered when the server has
// taken it. Where the server says that the recipient's address is wrong (an enhanced status
// code such as 5.1.1), the receiver is expired, and what is for it is kept for replay; a
// message that it refuses after reading it is offered three times; all else, such as a wrong
// password, a denied relay or greylisting, is tried again on the schedule. A message that
// came twice, since the connection broke before the server's answer, has the same Message-ID.
//
// What one day brings of a document refers to one message, by which mail programs show it
// as a thread; those that ask for equal subjects as well, such as Gmail, show it apart where
// other keywords were found.
package email

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"time"

	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

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
	e.dialer = newDialer(c.TLS, e.allow)
	if password := c.Password.Reveal(); password != "" {
		e.secrets.Add(password, "\x00"+c.Username+"\x00"+password) // the latter as PLAIN says it, in base64
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
	if _, ok := ctx.Deadline(); !ok { // go-mail needs one
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, pipeline.DefaultTimeout)
		defer cancel()
	}
	t := &talk{e: e, ctx: ctx}
	defer t.hangUp()
	return t.send(message)
}
