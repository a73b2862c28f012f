package slack

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for a Slack channel: either Token and Channel,
// or WebhookURL.
type Config struct {
	// Token is the token of a bot, such as xoxb-1234567890-abcdef. Its app needs the scope
	// chat:write, and the bot has to be a member of the channel.
	Token registry.Secret `yaml:"token"`
	// Channel is where the bot posts: the ID of a channel, such as C0123456789, or its name,
	// such as "#alerts". The ID stays the same when the channel is renamed.
	Channel string `yaml:"channel"`
	// Thread is whether each document has a thread, a new one each day: what it has to say
	// after the first message of the thread comes as a reply to that. The first reply is shown
	// in the channel too. Default: false. It needs a token.
	Thread bool `yaml:"thread"`
	// APIURL is where the methods of Slack's API are, for tests and gateways. Default:
	// https://slack.com/api/. It goes with a token.
	APIURL string `yaml:"api_url"`
	// WebhookURL is that of an incoming webhook, such as
	// https://hooks.slack.com/services/T000/B000/XXXX, which belongs to one channel. It is a
	// secret: whoever has it can post.
	WebhookURL registry.Secret `yaml:"webhook_url"`
	// Template is what is said of each notification in place of the built-in layout, in
	// Slack's mrkdwn, such as "*{{.title}}*: {{range .diffs}}{{.event}} {{.keyword}} {{end}}".
	// The values in it are escaped, so that a page mentions nobody and hides no link, but
	// asterisks and the like still format them. What comes to more than 3,800 characters is
	// laid out as usual.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong.
func New(c Config) (*Slack, error) {
	s := &Slack{token: c.Token.Reveal(), channel: c.Channel, thread: c.Thread}
	var errs []error
	wrong := func(field, reason string) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: reason})
	}
	var err error
	s.post, err = outbound.NewSender(c.Connection)
	errs = append(errs, err)
	s.post.Now, s.post.BodyDecides = time.Now, true
	s.template, err = render.CompileTemplate("template", c.Template)
	errs = append(errs, err)
	switch {
	case !c.WebhookURL.IsZero():
		s.asWebhook(c, wrong)
	case c.Token.IsZero() && c.Channel == "":
		wrong("token", "write either token and channel, or webhook_url")
	default:
		s.asBot(c, wrong)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// asBot makes s post to a channel, an ID or "#" and a name, as the bot of a token.
func (s *Slack) asBot(c Config, wrong func(field, reason string)) {
	s.send = s.postAsBot
	s.post.Secrets.Add(s.token)
	if !strings.HasPrefix(s.token, "xoxb-") && !strings.HasPrefix(s.token, "xoxe.xoxb-") {
		wrong("token", "a bot's token is needed, which begins with xoxb-")
	} else if strings.ContainsFunc(s.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		wrong("token", "there are characters in it that no token has, such as blanks")
	}
	if s.channel == "" || strings.TrimSpace(s.channel) != s.channel {
		wrong("channel", `a channel is needed: its ID such as C0123456789, or its name such as "#alerts"`)
	}
	u, err := outbound.ParseURL(cmp.Or(c.APIURL, defaultAPI), defaultAPI)
	switch {
	case err != nil:
		wrong("api_url", err.Error())
	case u.User != nil || u.RawQuery != "":
		wrong("api_url", "it can have neither user information nor a query")
	default:
		s.post.Secrets.AddURL(u)
		s.api = strings.TrimSuffix(u.String(), "/") + "/"
	}
}

// asWebhook makes s post through an incoming webhook.
func (s *Slack) asWebhook(c Config, wrong func(field, reason string)) {
	if !c.Token.IsZero() {
		wrong("token", "write either token and channel, or webhook_url, not both")
	}
	if c.Channel != "" {
		wrong("channel", "a webhook_url belongs to one channel already; a channel goes with a token")
	}
	if c.Thread {
		wrong("thread", "threads need a token, since a webhook does not tell which message it posted")
	}
	if c.APIURL != "" {
		wrong("api_url", "it goes with a token, not with a webhook_url")
	}
	s.send = s.postToWebhook
	u, err := outbound.ParseURL(c.WebhookURL.Reveal(), "https://hooks.slack.com/services/T000/B000/XXXX")
	if err != nil {
		wrong("webhook_url", err.Error())
		return
	}
	s.hook = u
	s.post.Secrets.AddURL(u)
	s.post.Secrets.Add(u.Path[strings.LastIndexByte(u.Path, '/')+1:])
}

// Register makes the configuration know the kind of sink "slack". Its sinks share their
// connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "slack", func(c *Config) *registry.Connection { return &c.Connection }, New)
}
