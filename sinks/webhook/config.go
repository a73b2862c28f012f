package webhook

import (
	"net/http"

	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for a webhook.
type Config struct {
	// URL is where to post to, such as https://ops.example.com/in. It is treated as a secret.
	// A user and password in it are sent as basic authentication. Required.
	URL registry.Secret `yaml:"url"`
	// Secret signs every attempt as Standard Webhooks prescribes: "whsec_" and base64, or any
	// other text as it is; 24 random bytes or more are advised. Absent: not signed.
	Secret registry.Secret `yaml:"secret"`
	// OldSecret signs every attempt as well, while the receiver changes to Secret.
	OldSecret registry.Secret `yaml:"old_secret"`
	// Format is what the body says: documented is the notification as the README shows it; v1
	// is exactly what the first Vokter server sent,
	// {"status":"ok","url":U,"diffs":[{"action":"inserted","keyword":K,"snippet":S}]}, for
	// receivers written for that; cloudevents is a CloudEvent 1.0 with the documented body as
	// its data. Default: documented.
	Format string `yaml:"format"`
	// Mode is how format: cloudevents is sent: structured has the whole event in the body;
	// binary has its attributes in headers that begin with ce-, which signatures do not cover,
	// and the data in the body. Default: structured.
	Mode string `yaml:"mode"`
	// Headers are sent with every request, such as {X-Api-Key: "${KEY}"}. Their values are
	// treated as secrets. Those that this program or HTTP itself sets cannot be given.
	Headers map[string]registry.Secret `yaml:"headers"`
	// Bearer is sent as "Authorization: Bearer ...", without that word itself.
	Bearer registry.Secret `yaml:"bearer"`
	// IdempotencyKey also sends the notification's ID as the header Idempotency-Key, in
	// quotes, for receivers that know that one. A request whose connection breaks is then
	// repeated once within the attempt. Default: false.
	IdempotencyKey bool `yaml:"idempotency_key"`
	// Verify sends nothing before the receiver has proved that it wants it: a POST of
	// {"type":"verification","challenge":C} has to be answered with a status from 200 to 299
	// and C alone, as text or as {"challenge":C}. Until then notifications wait. The first
	// notification after a start or a change of the configuration asks it again, unless it is
	// known to have got one about the same document in the week before, so it has to go on
	// answering. Default: false.
	Verify bool `yaml:"verify"`
}

// Build returns the webhook, or the *pipeline.FieldErrors that say what is wrong.
func (c Config) Build(opts ...Option) (*Webhook, error) {
	headers := make(map[string]string, len(c.Headers))
	for name, value := range c.Headers {
		headers[name] = value.Reveal()
	}
	all := []Option{
		secretOf("secret", c.Secret.Reveal()), secretOf("old_secret", c.OldSecret.Reveal()),
		Headers(headers), Bearer(c.Bearer.Reveal()),
	}
	if c.Format != "" {
		all = append(all, Format(c.Format))
	}
	if c.Mode != "" {
		all = append(all, Mode(c.Mode))
	}
	if c.IdempotencyKey {
		all = append(all, IdempotencyKey())
	}
	if c.Verify {
		all = append(all, Verify())
	}
	w := New(c.URL.Reveal(), append(all, opts...)...)
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return w, nil
}

// Register makes the configuration know the kind of sink "webhook". Its sinks share
// their connections.
func Register(r *registry.Registry) {
	post.Register(r, "webhook", func(c Config, client *http.Client) (*Webhook, error) { return c.Build(withClient(client)) })
}
