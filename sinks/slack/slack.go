package slack

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/layout"
	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/internal/template"
	"github.com/vokter/vokter/pipeline"
)

// defaultAPI is where the methods of Slack's API are.
const defaultAPI = "https://slack.com/api/"

// Slack is a channel of Slack to which notifications are posted.
type Slack struct {
	post     post.Sender
	allow    []netip.Prefix
	roots    *x509.CertPool
	template template.Text
	// send posts one message, in the way of a bot or of a webhook.
	send func(context.Context, message) error

	// api, token, channel and thread are those of a bot.
	api     string
	token   string
	channel string
	thread  bool
	// hook is the URL of a webhook.
	hook *url.URL

	invalid []error
}

// Option alters a Slack.
type Option func(*Slack)

// Allow permits networks besides public addresses.
func Allow(networks ...netip.Prefix) Option {
	return func(s *Slack) { s.allow = append(s.allow, networks...) }
}

// RootCAs are the authorities to trust in place of the system's.
func RootCAs(pool *x509.CertPool) Option {
	return func(s *Slack) { s.roots = pool }
}

// Thread has a bot keep one thread for each document, with a new one each day.
func Thread() Option {
	return func(s *Slack) { s.thread = true }
}

// APIURL is where a bot finds the methods of the API, https://slack.com/api/ by default.
func APIURL(rawURL string) Option {
	return func(s *Slack) { s.api = rawURL }
}

// withTemplate lays notifications out in place of the built-in layout, as Slack's mrkdwn.
func withTemplate(t template.Text) Option {
	return func(s *Slack) {
		if err := t.Validate(); err != nil {
			s.wrong("template", err.Error())
		}
		s.template = t
	}
}

// withClient makes sinks share their connections. The client has to be one of package
// guard.
func withClient(c *http.Client) Option {
	return func(s *Slack) { s.post.Client = c }
}

// NewBot returns a Slack that posts to a channel, an ID or "#" and a name, as the bot of
// token. What is not valid is reported by Validate, and by Deliver as a permanent error.
func NewBot(token, channel string, opts ...Option) *Slack {
	s := &Slack{api: defaultAPI, token: token, channel: channel}
	s.send = s.postAsBot
	s.apply(opts)
	s.post.Secrets.Add(token)
	if !strings.HasPrefix(token, "xoxb-") && !strings.HasPrefix(token, "xoxe.xoxb-") {
		s.wrong("token", "a bot's token is needed, which begins with xoxb-")
	} else if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		s.wrong("token", "there are characters in it that no token has, such as blanks")
	}
	if channel == "" || strings.TrimSpace(channel) != channel {
		s.wrong("channel", `a channel is needed: its ID such as C0123456789, or its name such as "#alerts"`)
	}
	u, err := post.ParseURL(s.api, defaultAPI)
	switch {
	case err != nil:
		s.wrong("api_url", err.Error())
	case u.User != nil || u.RawQuery != "":
		s.wrong("api_url", "it can have neither user information nor a query")
	default:
		s.post.Secrets.AddURL(u)
		s.api = strings.TrimSuffix(u.String(), "/") + "/"
	}
	return s
}

// NewWebhook returns a Slack that posts through an incoming webhook. A URL that is not
// valid is reported by Validate, and by Deliver as a permanent error.
func NewWebhook(rawURL string, opts ...Option) *Slack {
	s := &Slack{}
	s.send = s.postToWebhook
	s.apply(opts)
	u, err := post.ParseURL(rawURL, "https://hooks.slack.com/services/T000/B000/XXXX")
	if err != nil {
		s.wrong("webhook_url", err.Error())
		return s
	}
	s.hook = u
	s.post.Secrets.AddURL(u)
	s.post.Secrets.Add(u.Path[strings.LastIndexByte(u.Path, '/')+1:])
	return s
}

func (s *Slack) apply(opts []Option) {
	s.post.Now, s.post.BodyDecides = time.Now, true
	for _, opt := range opts {
		opt(s)
	}
	if s.post.Client == nil {
		s.post.Client = post.NewClient(s.allow, s.roots)
	}
}

func (s *Slack) wrong(field, reason string) {
	s.invalid = append(s.invalid, &pipeline.FieldError{Field: field, Reason: reason})
}

// Validate returns all that is wrong with what the sink was made with, as joined
// *pipeline.FieldErrors, or nil.
func (s *Slack) Validate() error { return errors.Join(s.invalid...) }

// Rate is what Slack allows a channel: one message a second, and a few at once.
func (s *Slack) Rate() (perSecond float64, burst int) { return 1, 3 }

// Deliver posts n. It follows no redirects, and reads no more than 128 KB of an answer.
// Where Slack refuses the message because of how it is made, it is posted as plain text.
func (s *Slack) Deliver(ctx context.Context, n pipeline.Notification) error {
	if err := s.Validate(); err != nil {
		return pipeline.Permanent(err)
	}
	l := layout.Of(n, budget)
	m := message{id: n.ID, text: fallback(l), blocks: blocksOf(l)}
	if text, ok := s.templated(ctx, n); ok {
		m = message{id: n.ID, text: text, markup: true}
	}
	err := s.send(ctx, m)
	if class, _ := pipeline.ClassOf(err); class != pipeline.ClassRefused {
		return err
	}
	if again := s.send(ctx, message{text: fallback(l)}); again != nil {
		return fmt.Errorf("%s; and as plain text: %w", err.Error(), again) // the class is that of again
	}
	pipeline.AttemptFrom(ctx).Degraded("posted without its layout, since Slack " + err.Error())
	return nil
}

// templated returns what the template makes of n, in mrkdwn. ok is false where n is to be
// laid out as usual.
func (s *Slack) templated(ctx context.Context, n pipeline.Notification) (text string, ok bool) {
	text, ok = s.template.RenderFor(ctx, n, template.Mrkdwn)
	if ok && layout.UTF16(text) > maxTemplated {
		pipeline.AttemptFrom(ctx).Degraded(fmt.Sprintf("the template says more than %d characters, at which Slack would split it", maxTemplated))
		return "", false
	}
	return text, ok
}
