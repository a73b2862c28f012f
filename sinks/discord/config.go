package discord

import (
	"github.com/vokter/vokter/internal/chat"
	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/internal/template"
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
	Template template.Text `yaml:"template"`
}

// Option alters how a Discord reaches its receiver.
type Option = chat.Option

// Build returns the sink, or the *pipeline.FieldError that says what is wrong.
func (c Config) Build(opts ...Option) (*Discord, error) {
	u, err := post.ParseURL(c.WebhookURL.Reveal(), "https://discord.com/api/webhooks/1234567890/AbC-123")
	if err != nil {
		return nil, &pipeline.FieldError{Field: "webhook_url", Reason: err.Error()}
	}
	query := u.Query()
	query.Set("wait", "true") // else Discord does not say whether there is a message
	u.RawQuery = query.Encode()
	return &Discord{chat.NewEndpoint(u, opts), c.Template}, nil
}

// Register makes the configuration know the kind of sink "discord". Its sinks share
// their connections.
func Register(r *registry.Registry) { chat.Register[Config](r, "discord") }
