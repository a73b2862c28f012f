package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
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
	// its data; its type is vokter.notification.v1, vokter.digest.v1, vokter.health.v1 or
	// vokter.test.v1, after the type in the body. Default: documented.
	Format string `yaml:"format"`
	// Mode is how format: cloudevents is sent: structured has the whole event in the body;
	// binary has its attributes in headers that begin with ce-, which signatures do not cover,
	// and the data in the body. Default: structured.
	Mode string `yaml:"mode"`
	// Body is what the body says, in place of format: a template for receivers that want a body
	// of their own kind, such as {"text": {{json .headline}}}. json writes a value as JSON, with
	// its quotes; what any other value prints is escaped for content_type, so that the text of a
	// page stays a text. A notification for which it fails is refused, and kept for replay.
	Body registry.Template `yaml:"body"`
	// ContentType is the media type of Body. Values are escaped for JSON (application/json and
	// those that end with +json; the body has to be valid JSON then), for forms
	// (application/x-www-form-urlencoded), for XML and HTML, and for nothing else. Default:
	// application/json.
	ContentType string `yaml:"content_type"`
	// SuccessStatus are the statuses, from 200 to 299, with which the receiver says that it has
	// the notification, such as [200] where it answers 204 to say that it did nothing. Default:
	// all from 200 to 299.
	SuccessStatus []int `yaml:"success_status"`
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
	registry.Connection
}

// New returns the webhook of c, or the joined *pipeline.FieldErrors that say what is wrong.
func New(c Config) (*Webhook, error) {
	var bad mistakes
	w := &Webhook{
		format: cmp.Or(c.Format, FormatDocumented), mode: c.Mode, bearer: c.Bearer.Reveal(), success: c.SuccessStatus,
		idempotent: c.IdempotencyKey, verify: c.Verify, headers: make(http.Header),
	}
	var err error
	w.post, err = outbound.NewSender(c.Connection)
	bad = append(bad, err)
	w.post.Now = time.Now
	w.url, err = outbound.ParseURL(c.URL.Reveal(), "https://example.com/hook")
	if err != nil {
		bad.add("url", err)
	} else {
		w.post.Secrets.AddURL(w.url)
	}
	w.takeKeys(c, &bad)
	w.takeHeaders(c, &bad)
	w.takeBody(c, &bad)
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	return w, nil
}

// mistakes are those of a Config.
type mistakes []error

func (m *mistakes) add(field string, err error) {
	*m = append(*m, &pipeline.FieldError{Field: field, Reason: err.Error()})
}

// takeKeys takes what signs.
func (w *Webhook) takeKeys(c Config, bad *mistakes) {
	for _, s := range []struct {
		field  string
		secret registry.Secret
	}{{"secret", c.Secret}, {"old_secret", c.OldSecret}} {
		if s.secret.IsZero() {
			continue
		}
		k, err := parseKey(s.secret.Reveal())
		if err != nil {
			bad.add(s.field, err)
			continue
		}
		w.keys = append(w.keys, k)
		w.post.Secrets.Add(s.secret.Reveal())
	}
}

// takeBody takes what the body says, and which answers mean that it was taken.
func (w *Webhook) takeBody(c Config, bad *mistakes) {
	formats, modes := []string{FormatDocumented, FormatV1, FormatCloudEvents}, []string{ModeStructured, ModeBinary}
	switch {
	case !slices.Contains(formats, w.format):
		bad.add("format", fmt.Errorf("%q is no format; write one of %s", w.format, strings.Join(formats, ", ")))
	case w.mode != "" && !slices.Contains(modes, w.mode):
		bad.add("mode", fmt.Errorf("%q is no mode; write one of %s", w.mode, strings.Join(modes, ", ")))
	case w.mode != "" && w.format != FormatCloudEvents:
		bad.add("mode", errors.New("it belongs to format: cloudevents; add that, or leave mode out"))
	}
	for i, status := range c.SuccessStatus {
		if status < 200 || status > 299 {
			bad.add(fmt.Sprintf("success_status[%d]", i), fmt.Errorf("%d is not between 200 and 299", status))
		}
	}
	switch {
	case c.Body == "" && c.ContentType != "":
		bad.add("content_type", errors.New("it goes with body; add that, or leave content_type out"))
		return
	case c.Body == "":
		return
	case c.Format != "" || c.Mode != "":
		bad.add("body", errors.New("it takes the place of format and mode; leave those out"))
	}
	w.contentType = cmp.Or(c.ContentType, mediaJSON)
	if _, _, err := mime.ParseMediaType(w.contentType); err != nil || checkValue(w.contentType) != nil {
		bad.add("content_type", fmt.Errorf("%q is not a media type; write one such as application/json or text/plain; charset=utf-8", w.contentType))
		return
	}
	body, err := render.CompileBody("body", c.Body, w.contentType)
	*bad = append(*bad, err)
	w.body = body
}

// Register makes the configuration know the kind of sink "webhook". Its sinks share
// their connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "webhook", func(c *Config) *registry.Connection { return &c.Connection }, New)
}
