package slack

import (
	"errors"
	"net/http"

	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/internal/template"
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
	Template template.Text `yaml:"template"`
}

// Build returns the sink, or the *pipeline.FieldErrors that say what is wrong.
func (c Config) Build(opts ...Option) (*Slack, error) {
	s, err := c.make(opts)
	if err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s, nil
}

func (c Config) make(opts []Option) (*Slack, error) {
	opts = append(opts, withTemplate(c.Template))
	wrong := func(field, reason string) error { return &pipeline.FieldError{Field: field, Reason: reason} }
	if c.WebhookURL.IsZero() {
		if c.Token.IsZero() && c.Channel == "" {
			return nil, wrong("token", "write either token and channel, or webhook_url")
		}
		if c.Thread {
			opts = append(opts, Thread())
		}
		if c.APIURL != "" {
			opts = append(opts, APIURL(c.APIURL))
		}
		return NewBot(c.Token.Reveal(), c.Channel, opts...), nil
	}
	var errs []error
	if !c.Token.IsZero() {
		errs = append(errs, wrong("token", "write either token and channel, or webhook_url, not both"))
	}
	if c.Channel != "" {
		errs = append(errs, wrong("channel", "a webhook_url belongs to one channel already; a channel goes with a token"))
	}
	if c.Thread {
		errs = append(errs, wrong("thread", "threads need a token, since a webhook does not tell which message it posted"))
	}
	if c.APIURL != "" {
		errs = append(errs, wrong("api_url", "it goes with a token, not with a webhook_url"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return NewWebhook(c.WebhookURL.Reveal(), opts...), nil
}

// Register makes the configuration know the kind of sink "slack". Its sinks share their
// connections.
func Register(r *registry.Registry) {
	post.Register(r, "slack", func(c Config, client *http.Client) (*Slack, error) { return c.Build(withClient(client)) })
}
