package mattermost

import (
	"errors"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for a mattermost.
type Config struct {
	// WebhookURL is the URL of an incoming webhook, such as
	// https://mattermost.example.com/hooks/xxxgeneratedkeyxxx, from Integrations, Incoming
	// Webhooks. Required.
	WebhookURL registry.Secret `yaml:"webhook_url"`
	// Channel is where to post in place of the webhook's own channel: the name in the
	// channel's URL, such as town-square, or @ and a user's name. A webhook that is locked to
	// its channel refuses it. Default: the webhook's channel.
	Channel string `yaml:"channel"`
	// Username is shown as the author of the posts, where the server lets integrations
	// override it. Default: that of the webhook.
	Username string `yaml:"username"`
	// Template is what a message says, in place of the built-in layout: Markdown, cut at
	// 16,383 characters. The values in it are escaped. Nothing in it mentions anybody.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong.
func New(c Config) (*Mattermost, error) {
	var errs []error
	wrong := func(field, reason string) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: reason})
	}
	u, err := outbound.ParseURL(c.WebhookURL.Reveal(), "https://mattermost.example.com/hooks/xxxgeneratedkeyxxx")
	if err != nil {
		wrong("webhook_url", err.Error())
	}
	if !outbound.Token(c.Channel) {
		wrong("channel", "write the name in the channel's URL, such as town-square, or @ and a user's name")
	}
	if render.Clean(c.Username) != c.Username {
		wrong("username", "write one line, without blanks around it")
	}
	sender, err := outbound.NewSender(c.Connection)
	errs = append(errs, err)
	text, err := render.CompileTemplate("template", c.Template)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Mattermost{outbound.NewEndpoint(u, sender), c.Channel, c.Username, text}, nil
}

// Register makes the configuration know the kind of sink "mattermost". Its sinks share
// their connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "mattermost", func(c *Config) *registry.Connection { return &c.Connection }, New)
}
