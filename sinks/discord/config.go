package discord

import (
	"errors"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for a discord.
type Config struct {
	// WebhookURL is the URL of the channel's webhook, such as
	// https://discord.com/api/webhooks/1234567890/AbC-123, from Edit Channel, Integrations,
	// Webhooks. "?thread_id=123" behind it posts to a thread of that channel. Required.
	WebhookURL registry.Secret `yaml:"webhook_url"`
	// Template is what a message says, in place of the built-in layout: Discord's Markdown,
	// cut at 4,096 characters. The values in it are escaped. Nothing in it mentions anybody.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong.
func New(c Config) (*Discord, error) {
	var errs []error
	u, err := outbound.ParseURL(c.WebhookURL.Reveal(), "https://discord.com/api/webhooks/1234567890/AbC-123")
	if err != nil {
		errs = append(errs, &pipeline.FieldError{Field: "webhook_url", Reason: err.Error()})
	}
	sender, err := outbound.NewSender(c.Connection)
	errs = append(errs, err)
	text, err := render.CompileTemplate("template", c.Template)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	query := u.Query()
	query.Set("wait", "true") // else Discord does not say whether there is a message
	u.RawQuery = query.Encode()
	return &Discord{outbound.NewEndpoint(u, sender), text}, nil
}

// Register makes the configuration know the kind of sink "discord". Its sinks share
// their connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "discord", func(c *Config) *registry.Connection { return &c.Connection }, New)
}
