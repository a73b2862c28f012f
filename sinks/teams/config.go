package teams

import (
	"errors"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
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
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong.
func New(c Config) (*Teams, error) {
	var errs []error
	u, err := outbound.ParseURL(c.WebhookURL.Reveal(), "https://prod-01.westeurope.logic.azure.com/workflows/...")
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
	return &Teams{outbound.NewEndpoint(u, sender).StatusDecides(), text}, nil
}

// Register makes the configuration know the kind of sink "teams". Its sinks share their
// connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "teams", func(c *Config) *registry.Connection { return &c.Connection }, New)
}
