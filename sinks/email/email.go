// Package email is the sink that sends notifications by SMTP, with a text and an HTML part.
//
// Each notification is one message to all recipients. It is delivered when the server has
// accepted it for each of them. If the server refuses some recipients, the others get the
// message at once, and the sink retries only the refused ones on the schedule: nobody gets the
// message twice. Later notifications wait meanwhile, so recipients that must not wait for one
// another need a sink each. If the server says that the address of a recipient is wrong (an
// enhanced status code such as 5.1.1), the sink leaves that recipient out, and a health event
// (receiver_degraded) names it once a day. Replay sends to all recipients, under the same
// Message-ID; within a week of a message that some of them got, to the others only.
//
// If the server says that the addresses of all recipients are wrong, the receiver expires, and
// its notifications are kept for replay. A message that the server refuses after reading it is
// offered three times. Every other failure, such as a wrong password, a denied relay or
// greylisting, is retried on the schedule. A wrong password is reported by a health event after
// the first attempt. If the connection breaks before the server answers, a message may arrive
// twice, with the same Message-ID.
//
// All messages of one day about a document refer to one message, so that mail programs show
// them as a thread. Mail programs that also require equal subjects, such as Gmail, show
// messages about other keywords apart.
package email

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// How the connection to the mail server is encrypted.
const (
	// StartTLS begins in the clear and changes to TLS before any data is sent. A server that
	// does not offer it gets nothing.
	StartTLS = "starttls"
	// Implicit speaks TLS from the first byte.
	Implicit = "implicit"
	// Plain never encrypts.
	Plain = "none"
)

// Config is the configuration of an e-mail sink.
type Config struct {
	// Host is the mail server that takes the messages: a name or an address, without port, such
	// as smtp.example.com. It must have a public address, unless allow.sinks permits another.
	// Required.
	Host string `yaml:"host"`
	// Port is the server's port, 1 to 65535. Default: 587 with tls: starttls, 465 with tls:
	// implicit, 25 with tls: none.
	Port int `yaml:"port"`
	// TLS is how the connection is encrypted: starttls (a server that does not offer STARTTLS
	// gets nothing), implicit (TLS from the first byte), or none, which is only for a relay at
	// an address that is not public, and not together with a username. The server's certificate
	// must be valid for host. Default: starttls.
	TLS string `yaml:"tls"`
	// Username signs in to the server, with SCRAM-SHA-256, PLAIN, LOGIN or CRAM-MD5, the first
	// of them that it offers. Default: not signed in.
	Username string `yaml:"username"`
	// Password goes with username.
	Password registry.Secret `yaml:"password"`
	// From is the sender: an address, or a name with one, such as "Vokter <vokter@example.com>".
	// Its domain is that of the Message-ID. Required.
	From string `yaml:"from"`
	// To is the recipient, written like from, or a list of up to 100 recipients, who all get the
	// same message and see each other's addresses. See below what happens where the server
	// refuses some of them. Required.
	To registry.Texts `yaml:"to"`
	// ReplyTo is the address to which an answer goes, written like from. Default: that of from.
	ReplyTo string `yaml:"reply_to"`
	// Helo is the name in the greeting to the server, for servers that insist on a full domain
	// name. Default: the name of this machine.
	Helo string `yaml:"helo"`
	// ListUnsubscribe is where the recipient's mail program unsubscribes: a mailto:, https: or
	// http: URL. One that begins with https: must accept the POST of RFC 8058, because mail
	// programs then offer to unsubscribe with one click. Default: none.
	ListUnsubscribe string `yaml:"list_unsubscribe"`
	// ListID is the identifier by which mail programs sort messages into folders, in the header
	// List-Id: a name such as alerts.example.com, or a text with one, such as "Alerts
	// <alerts.example.com>". Default: `vokter.` and the domain of from.
	ListID string `yaml:"list_id"`
	// Headers are further headers of every message, by name, such as {X-Priority: "1"}. A value
	// is one line of at most 500 characters. Headers that the sink sets are not allowed.
	// Default: none.
	Headers map[string]string `yaml:"headers"`
	// SubjectPrefix begins each subject, followed by a blank; at most 60 characters, such as
	// "[vokter]". Default: none.
	SubjectPrefix string `yaml:"subject_prefix"`
	// Subject lays out the subject, behind subject_prefix, in place of the built-in one: one
	// line, cut at 180 characters, such as "{{.host}}: {{.headline}}". Default: what happened, and
	// the title of the page.
	Subject registry.Template `yaml:"subject"`
	// Template lays out the text part in place of the built-in layout. A message with a
	// template for one part only has that part only. Default: none.
	Template registry.Template `yaml:"template"`
	// TemplateHTML lays out the HTML part. What it prints is escaped, so that the text of a
	// page cannot become markup. Default: none.
	TemplateHTML registry.Template `yaml:"template_html"`
	registry.Connection
}

// Email sends notifications to its recipients, each over a connection of its own. It is
// safe for concurrent use.
type Email struct {
	cfg         Config
	from        *mail.Address
	recipients  []*mail.Address
	replyTo     *mail.Address // nil: that of from
	listID      string
	unsubscribe *url.URL
	// subjectTemplate, textTemplate and htmlTemplate replace the built-in layouts where they are set.
	subjectTemplate, textTemplate, htmlTemplate render.Template
	dialer                                      outbound.Dialer
	tls                                         *tls.Config
	secrets                                     outbound.Scrubber
	now                                         func() time.Time
}

var _ pipeline.Sink = (*Email)(nil)

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors.
func New(c Config) (*Email, error) {
	c.TLS = cmp.Or(c.TLS, StartTLS)
	c.Port = cmp.Or(c.Port, defaultPorts[c.TLS])
	e := &Email{cfg: c, now: time.Now}
	var bad outbound.Mistakes
	c.check(&bad)
	e.subjectTemplate = bad.Template("subject", c.Subject)
	e.textTemplate = bad.Template("template", c.Template)
	e.htmlTemplate = bad.Template("template_html", c.TemplateHTML)
	g, secrets, err := outbound.SocketConfigOf(c.Connection)
	bad.Join(err)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	e.from, _ = parseAddress(c.From) // validated
	for _, s := range c.To {
		to, _ := parseAddress(s)
		e.recipients = append(e.recipients, to)
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

// Register registers the kind of sink "email" with r.
func Register(r *registry.Registry) {
	registry.AddSink(r, "email", func(c Config, env registry.Env) (*Email, error) {
		c.Allow = env.AllowSinks
		return New(c)
	})
}

// validID is what can stand in a Message-ID as it is.
var validID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

// Deliver sends n. It is delivered when the server has said so after the last byte of the
// message, and not before.
func (e *Email) Deliver(ctx context.Context, n pipeline.Notification) error {
	if !validID.MatchString(n.ID) {
		return failure.Permanent(errors.New("the notification's ID is empty, or cannot be that of a message"))
	}
	message, err := e.compose(ctx, n)
	if err != nil {
		return failure.Permanent(err)
	}
	if _, ok := ctx.Deadline(); !ok { // go-mail needs one
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, pipeline.DefaultTimeout)
		defer cancel()
	}
	t := &smtpSession{e: e, ctx: ctx}
	defer t.close()
	attempt := pipeline.AttemptFrom(ctx)
	list, err := t.send(message, e.missingRecipients(attempt, n.ID))
	if err != nil {
		return err
	}
	return e.classifyRefusals(attempt, n.ID, list)
}

// defaultPorts are the defaults of Config.Port.
var defaultPorts = map[string]int{StartTLS: 587, Implicit: 465, Plain: 25}

// maxSubjectPrefix bounds Config.SubjectPrefix, in runes.
const maxSubjectPrefix = 60

var (
	hostNamePattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)
	heloPattern     = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[A-Za-z0-9.:]+\])$`)
)

// check adds to bad what is wrong with c itself. No message quotes a password.
func (c Config) check(bad *outbound.Mistakes) {
	bad.Add("host", checkHost(c.Host))
	if c.Port < 0 || c.Port > 65535 {
		bad.Addf("port", "%d is not a port; write a number from 1 to 65535", c.Port)
	}
	if _, ok := defaultPorts[c.TLS]; !ok {
		bad.Addf("tls", "%q is not a way to encrypt; write starttls, implicit or none", c.TLS)
	}
	switch {
	case c.Username == "" && !c.Password.IsZero():
		bad.Addf("username", "a password is set, but no username")
	case c.Username != "" && c.Password.IsZero():
		bad.Addf("password", "a username is set, but no password")
	case c.Username != "" && c.TLS == Plain:
		bad.Addf("username", "the password would cross the network unencrypted; use tls: starttls or implicit")
	}
	if c.TLS == Plain && !c.Proxy.IsZero() {
		bad.Addf("proxy", "with tls: none the message could cross the internet unencrypted behind the proxy; use tls: starttls or implicit")
	}
	_, err := parseAddress(c.From)
	bad.Add("from", err)
	c.checkRecipients(bad)
	if c.ReplyTo != "" {
		_, err := parseAddress(c.ReplyTo)
		bad.Add("reply_to", err)
	}
	if c.Helo != "" && !heloPattern.MatchString(c.Helo) {
		bad.Addf("helo", "%q is not the name of a machine; write one such as vokter.example.com", c.Helo)
	}
	_, err = parseUnsubscribe(c.ListUnsubscribe)
	bad.Add("list_unsubscribe", err)
	_, err = parseListID(c.ListID, "")
	bad.Add("list_id", err)
	outbound.Headers(bad, c.Headers, checkHeader, func(string, string) {})
	if p := c.SubjectPrefix; render.Clean(p) != p || render.Runes(p) > maxSubjectPrefix {
		bad.Addf("subject_prefix", "write one line of at most %d characters", maxSubjectPrefix)
	}
}

// checkRecipients adds to bad what is wrong with the recipients.
func (c Config) checkRecipients(bad *outbound.Mistakes) {
	if len(c.To) == 0 || len(c.To) > maxRecipients {
		bad.Addf("to", "write one address, or a list of at most %d, such as [ann@example.com, bob@example.com]", maxRecipients)
		return
	}
	seen := make(map[string]bool)
	for i, s := range c.To {
		field := "to"
		if len(c.To) > 1 {
			field = fmt.Sprintf("to[%d]", i)
		}
		a, err := parseAddress(s)
		switch {
		case err != nil:
			bad.Add(field, err)
		case seen[a.Address]:
			bad.Addf(field, "%s is listed twice; list it once", a.Address)
		default:
			seen[a.Address] = true
		}
	}
}

// checkHost says what is wrong with the name of a server.
func checkHost(host string) error {
	switch {
	case host == "":
		return errors.New("the name of a mail server is required, such as smtp.example.com")
	case net.ParseIP(host) == nil && !hostNamePattern.MatchString(host):
		return errors.New("this is not the name or address of a server; write it without scheme, user and port, such as smtp.example.com")
	}
	return nil
}

// parseAddress reads a mailbox.
func parseAddress(s string) (*mail.Address, error) {
	if s == "" {
		return nil, errors.New("an address is required, such as alerts@example.com")
	}
	if list, err := mail.ParseAddressList(s); err == nil && len(list) > 1 {
		return nil, errors.New("this is more than one address; write several recipients as a list, such as to: [ann@example.com, bob@example.com]")
	}
	a, err := mail.ParseAddress(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not an address; write one such as alerts@example.com, or \"Alerts <alerts@example.com>\"", s)
	}
	// Other addresses need SMTPUTF8 on every server on the way, and bounce otherwise.
	if strings.ContainsFunc(a.Address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("the address %q has characters that not every mail server takes; write it in ASCII, without blanks", a.Address)
	}
	return a, nil
}

// parseUnsubscribe reads the URL to unsubscribe at; none is nil.
func parseUnsubscribe(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || strings.ContainsAny(raw, "<> \""):
		return nil, errors.New("this is not a URL; write one such as mailto:unsubscribe@example.com or https://example.com/unsubscribe")
	case u.Scheme == "mailto" && strings.Contains(u.Opaque, "@"):
		return u, nil
	case (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "":
		return u, nil
	}
	return nil, errors.New("the URL must begin with mailto: and an address, or with https:// or http:// and a host")
}
