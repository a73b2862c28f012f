package teams

import (
	"github.com/vokter/vokter/internal/chat"
	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/internal/template"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for a teams.
type Config struct {
	// WebhookURL is the URL of a workflow that begins with "When a Teams webhook request is
	// received", such as https://prod-01.westeurope.logic.azure.com/workflows/.... Required.
	WebhookURL registry.Secret `yaml:"webhook_url"`
	// Template is what a card says, in place of the built-in layout: plain text of one or more
	// lines, cut at about 20,000 bytes. The button that opens the page stays.
	Template template.Text `yaml:"template"`
}

// Option alters how a Teams reaches its receiver.
type Option = chat.Option

// Build returns the sink, or the *pipeline.FieldError that says what is wrong.
func (c Config) Build(opts ...Option) (*Teams, error) {
	u, err := post.ParseURL(c.WebhookURL.Reveal(), "https://prod-01.westeurope.logic.azure.com/workflows/...")
	if err != nil {
		return nil, &pipeline.FieldError{Field: "webhook_url", Reason: err.Error()}
	}
	return &Teams{chat.NewEndpoint(u, append([]Option{chat.StatusDecides}, opts...)), c.Template}, nil
}

// Register makes the configuration know the kind of sink "teams". Its sinks share their
// connections.
func Register(r *registry.Registry) { chat.Register[Config](r, "teams") }
