package webhook

import (
	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for a webhook.
type Config struct {
	// URL is where to post to.
	URL registry.Secret `yaml:"url"`
	// Secret signs every attempt: "whsec_" and base64, or any other text as it is. Absent:
	// not signed.
	Secret registry.Secret `yaml:"secret"`
	// OldSecret signs every attempt as well, while the receiver changes to Secret.
	OldSecret registry.Secret `yaml:"old_secret"`
}

// Build returns the webhook, or the *pipeline.FieldErrors that say what is wrong.
func (c Config) Build(opts ...Option) (*Webhook, error) {
	opts = append([]Option{secretOf("secret", c.Secret.Reveal()), secretOf("old_secret", c.OldSecret.Reveal())}, opts...)
	w := New(c.URL.Reveal(), opts...)
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return w, nil
}

// Register makes the configuration know the kind of sink "webhook". Its sinks share
// their connections.
func Register(r *registry.Registry) {
	var clients post.Clients
	r.Sink("webhook", func(decode registry.Decode, env registry.Env) (pipeline.Sink, error) {
		var c Config
		if err := decode(&c); err != nil {
			return nil, err
		}
		w, err := c.Build(withClient(clients.For(env.AllowSinks)))
		if err != nil {
			return nil, err
		}
		return w, nil
	})
}
