// Package email is the sink that sends notifications by SMTP, with a text and an HTML part.
//
// Each notification is one message to all recipients. It is delivered when the server has
// taken it for each of them. Where the server refuses some of them before the message, it gets
// the message for the others at once. It gets it again, on the schedule, for those alone that it
// refused, and who has the message gets it once; what comes next waits for that, so recipients
// that must not wait for one another need a sink each. A recipient whose address the server says
// is wrong (an enhanced status code such as 5.1.1) is left out, and a health event
// (receiver_degraded) names it, once a day. Replay sends to all recipients, under the same
// Message-ID.
//
// Where the server says of all recipients that their addresses are wrong, the receiver is expired, and what is for it is kept for replay; a
// message that it refuses after reading it is offered three times; all else, such as a wrong
// password, a denied relay or greylisting, is tried again on the schedule. Of a wrong password
// the health event comes after the first attempt. A message that
// came twice, since the connection broke before the server's answer, has the same Message-ID.
//
// What one day brings of a document refers to one message, by which mail programs show it
// as a thread; those that ask for equal subjects as well, such as Gmail, show it apart where
// other keywords were found.
package email

import (
	"context"
	"crypto/tls"
	"errors"
	"net/mail"
	"net/url"
	"regexp"
	"time"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Email sends notifications to its recipients, each over a connection of its own. It is
// safe for concurrent use.
type Email struct {
	cfg         Config
	from        *mail.Address
	to          []*mail.Address
	replyTo     *mail.Address // nil: that of from
	listID      string
	unsubscribe *url.URL
	// heading, of the subject, text and html are templates.
	heading, text, html render.Template
	dialer              outbound.Dialer
	tls                 *tls.Config
	secrets             outbound.Scrubber
	now                 func() time.Time
}

var _ pipeline.Sink = (*Email)(nil)

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong.
func New(c Config) (*Email, error) {
	c = c.withDefaults()
	e := &Email{cfg: c, now: time.Now}
	errs := c.mistakes()
	for _, t := range []struct {
		field  string
		source registry.Template
		to     *render.Template
	}{{"subject", c.Subject, &e.heading}, {"template", c.Template, &e.text}, {"template_html", c.TemplateHTML, &e.html}} {
		var err error
		*t.to, err = render.CompileTemplate(t.field, t.source)
		errs = append(errs, err)
	}
	g, secrets, err := outbound.ConfigOf(c.Connection)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	e.from, _ = parseAddress(c.From) // validated
	for _, s := range c.To {
		to, _ := parseAddress(s)
		e.to = append(e.to, to)
	}
	if c.ReplyTo != "" {
		e.replyTo, _ = parseAddress(c.ReplyTo)
	}
	e.listID, _ = parseListID(c.ListID, e.domain())
	e.unsubscribe, _ = parseUnsubscribe(c.ListUnsubscribe)
	e.dialer, e.secrets, e.tls = newDialer(c.TLS, g), secrets, g.TLS()
	e.tls.ServerName = c.Host
	if password := c.Password.Reveal(); password != "" {
		e.secrets.Add(password, "\x00"+c.Username+"\x00"+password) // the latter as PLAIN says it, in base64
	}
	return e, nil
}

// Register makes the configuration know the kind of sink "email".
func Register(r *registry.Registry) {
	registry.AddSink(r, "email", func(c Config, env registry.Env) (*Email, error) {
		c.Allow = env.AllowSinks
		return New(c)
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
	attempt := pipeline.AttemptFrom(ctx)
	list, err := t.send(message, e.remaining(attempt, n.ID))
	if err != nil {
		return err
	}
	return e.settle(attempt, n.ID, list)
}
