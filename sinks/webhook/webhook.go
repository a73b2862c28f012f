// Package webhook is the sink that posts notifications as JSON to a URL, signed as
// Standard Webhooks 1.0 prescribes (https://www.standardwebhooks.com), and as CloudEvents
// where that is wanted.
//
// Every request is a POST with the headers webhook-id, which is the notification's ID on every
// attempt, webhook-timestamp, which is when the attempt was made, and with a secret
// webhook-signature. What the receiver answers means:
//
//   - 200 to 299: it has the notification.
//   - 400, 413, 414, 415 and 422: it refuses this body. That is tried three times, then it
//     goes to the dead letters, and the next one follows.
//   - 410: it does not exist any more. The receiver is expired, with a health event.
//   - 429: no failure. It is asked again when Retry-After says, or after 30 seconds.
//   - 401 and 403: a failure that a health event reports at once, since somebody has to fix the
//     token or the secret. Notifications are retried on the schedule.
//   - 300 to 399: a failure. Redirects are not followed; the reason names the host where this
//     one leads.
//   - Anything else, and no answer: it is retried on the schedule, and later notifications wait.
//     A health event reports three failures in a row, and an invalid certificate at once.
//
// With any failure the header Retry-After, as seconds or a date, says how long nothing more is
// to be sent, for a day at most.
//
// With verify: true the sink first asks a new receiver to confirm that it wants notifications:
//
//	POST /in HTTP/1.1
//	Content-Type: application/json
//	webhook-id: verification_IYT5VCGHSK7DBHAE4WPG6ZYXRM
//
//	{"type":"verification","challenge":"IYT5VCGHSK7DBHAE4WPG6ZYXRM"}
//
// It answers with a status from 200 to 299 and IYT5VCGHSK7DBHAE4WPG6ZYXRM alone, as text or as
// {"challenge":"IYT5VCGHSK7DBHAE4WPG6ZYXRM"}. Until it does, every attempt fails, and nothing but
// this request is sent. A receiver that sends back whatever it gets proves nothing.
package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is the configuration of a webhook sink.
type Config struct {
	// URL is the URL to post to, such as https://ops.example.com/in. It is treated as a secret.
	// A user and password in it are sent as basic authentication. Required.
	URL registry.Secret `yaml:"url"`
	// Secret signs every attempt as Standard Webhooks prescribes: "whsec_" and base64, or any
	// other text as it is; 24 random bytes or more are advised. An empty one is refused. Absent: not signed.
	Secret registry.Secret `yaml:"secret"`
	// OldSecret signs every attempt as well, while the receiver changes to Secret.
	OldSecret registry.Secret `yaml:"old_secret"`
	// Format is what the body says: documented is the notification as the README shows it; v1
	// is exactly what the first Vokter server sent,
	// {"status":"ok","url":U,"diffs":[{"action":"inserted","keyword":K,"snippet":S}]}, for
	// receivers written for that; cloudevents is a CloudEvent 1.0 with the documented body as
	// its data; its type is vokter.notification.v1. A change record is sent as it is, or with
	// cloudevents as the data of a vokter.change.v1; v1 and body have no change records. For a
	// subscription without keywords, v1 has an empty keyword in each diff. Default: documented.
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
	// SuccessStatus are the statuses, from 200 to 299, that mean delivered, such as [200] if
	// 204 means that the receiver did nothing. Default: all from 200 to 299.
	SuccessStatus []int `yaml:"success_status"`
	// Headers are sent with every request, such as {X-Api-Key: "${KEY}"}. Their values are
	// treated as secrets. Headers that this program or HTTP itself sets are not allowed.
	Headers map[string]registry.Secret `yaml:"headers"`
	// Bearer is sent as "Authorization: Bearer ...", without that word itself.
	Bearer registry.Secret `yaml:"bearer"`
	// IdempotencyKey also sends the notification's ID as the header Idempotency-Key, in quotes,
	// for receivers that use it. A request whose connection breaks is then repeated once within
	// the attempt. Default: false.
	IdempotencyKey bool `yaml:"idempotency_key"`
	// Verify sends nothing before the receiver has confirmed that it wants notifications: it
	// must answer a POST of {"type":"verification","challenge":C} with a status from 200 to 299
	// and C alone, as text or as {"challenge":C}. Until then notifications wait. The first
	// notification after a start or a change of the configuration asks it again, unless it is
	// known to have got one about the same document in the week before, so it has to go on
	// answering. Default: false.
	Verify bool `yaml:"verify"`
	registry.Connection
}

// New returns the webhook of c, or joined *pipeline.FieldErrors that name what is wrong.
func New(c Config) (*Webhook, error) {
	var bad outbound.Mistakes
	w := &Webhook{
		format: cmp.Or(c.Format, FormatDocumented), mode: c.Mode, bearer: c.Bearer.Reveal(), successStatus: c.SuccessStatus,
		idempotent: c.IdempotencyKey, verify: c.Verify, headers: make(http.Header),
	}
	bad.Unset("bearer", c.Bearer)
	w.sender = bad.Sender(c.Connection)
	if w.url = bad.URL("url", c.URL, "https://example.com/hook"); w.url != nil {
		w.sender.Secrets.AddURL(w.url)
	}
	w.setKeys(c, &bad)
	w.setHeaders(c, &bad)
	w.setBody(c, &bad)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return w, nil
}

// Register registers the kind of sink "webhook" with r. Its sinks share connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "webhook", func(c *Config) *registry.Connection { return &c.Connection }, New)
}

// Webhook posts notifications to one URL. It is safe for concurrent use.
type Webhook struct {
	url     *url.URL
	keys    []key
	headers http.Header
	bearer  string
	// format is one of the Format constants, mode one of the Mode constants or empty.
	format, mode string
	// body takes the place of format where it is not zero.
	body          render.Body
	contentType   string
	successStatus []int // statuses; none: all 2xx
	idempotent    bool
	verify        bool
	verified      atomic.Bool // the receiver did, in this process
	sender        outbound.Sender
}

var _ pipeline.ChangeSink = (*Webhook)(nil)

// TakesChanges returns an error if the webhook has a format that has no change records.
func (w *Webhook) TakesChanges() error {
	switch {
	case !w.body.IsZero():
		return errors.New("a template in body cannot make a change record; name a webhook without body")
	case w.format == FormatV1:
		return errors.New("format: v1 has no change records; name a webhook with format: documented or cloudevents")
	}
	return nil
}

// Batch says that an attempt delivers waiting notifications, one after the other.
func (w *Webhook) Batch() (notifications, atOnce int) { return 100, 1 }

// Host returns the host of the URL, with its port.
func (w *Webhook) Host() string { return w.url.Host }

// Deliver posts n. It follows no redirects, and reads no more than 128 KB of the answer.
func (w *Webhook) Deliver(ctx context.Context, n pipeline.Notification) error {
	if checkValue(n.ID) != nil || strings.Contains(n.ID, ".") { // a dot ends the ID in what is signed
		return failure.Permanent(errors.New("the notification's ID is empty, has a dot, or cannot stand in a header"))
	}
	body, h, err := w.encode(ctx, n)
	if err != nil {
		return err
	}
	if w.verify {
		if err := w.ensureVerified(ctx); err != nil {
			return err
		}
	}
	answer, err := w.send(ctx, w.sender, n.ID, h, body)
	if err != nil {
		return err
	}
	if err := answer.Err(); err != nil || len(w.successStatus) == 0 || slices.Contains(w.successStatus, answer.Status) {
		return err
	}
	return fmt.Errorf("answered %d, which is not in success_status: the receiver did not take it", answer.Status)
}

// send posts body by sender with h, which is that of body alone, under id.
func (w *Webhook) send(ctx context.Context, sender outbound.Sender, id string, h http.Header, body []byte) (*outbound.Answer, error) {
	maps.Copy(h, w.headers)
	at := w.sender.Now()
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	if len(w.keys) > 0 {
		h.Set("webhook-signature", signatures(w.keys, id, at, body))
	}
	if w.bearer != "" {
		h.Set("Authorization", "Bearer "+w.bearer)
	}
	if w.idempotent {
		h.Set("Idempotency-Key", quoteID(id))
	}
	return sender.Do(ctx, http.MethodPost, w.url, h, body)
}

// quoteID returns id as the value of Idempotency-Key: a string in quotes.
func quoteID(id string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(id) + `"`
}

// setKeys sets the keys that sign.
func (w *Webhook) setKeys(c Config, bad *outbound.Mistakes) {
	for _, s := range []struct {
		field  string
		secret registry.Secret
	}{{"secret", c.Secret}, {"old_secret", c.OldSecret}} {
		if bad.Unset(s.field, s.secret); s.secret.IsZero() {
			continue
		}
		k, err := parseKey(s.secret.Reveal())
		if err != nil {
			bad.Add(s.field, err)
			continue
		}
		w.keys = append(w.keys, k)
		w.sender.Secrets.Add(s.secret.Reveal())
	}
}

// setBody sets the template of the body. It checks all settings of the body, and of the answers that mean
// success.
func (w *Webhook) setBody(c Config, bad *outbound.Mistakes) {
	formats, modes := []string{FormatDocumented, FormatV1, FormatCloudEvents}, []string{ModeStructured, ModeBinary}
	switch {
	case !slices.Contains(formats, w.format):
		bad.Addf("format", "%q is no format; write one of %s", w.format, strings.Join(formats, ", "))
	case w.mode != "" && !slices.Contains(modes, w.mode):
		bad.Addf("mode", "%q is no mode; write one of %s", w.mode, strings.Join(modes, ", "))
	case w.mode != "" && w.format != FormatCloudEvents:
		bad.Addf("mode", "it belongs to format: cloudevents; add that, or leave mode out")
	}
	for i, status := range c.SuccessStatus {
		if status < 200 || status > 299 {
			bad.Addf(fmt.Sprintf("success_status[%d]", i), "%d is not between 200 and 299", status)
		}
	}
	switch {
	case c.Body == nil && c.ContentType != "":
		bad.Addf("content_type", "it goes with body; add that, or leave content_type out")
		return
	case c.Body == nil:
		return
	case c.Format != "" || c.Mode != "":
		bad.Addf("body", "it takes the place of format and mode; leave those out")
	}
	w.contentType = cmp.Or(c.ContentType, mediaJSON)
	if _, _, err := mime.ParseMediaType(w.contentType); err != nil || checkValue(w.contentType) != nil {
		bad.Addf("content_type", "%q is not a media type; write one such as application/json or text/plain; charset=utf-8", w.contentType)
		return
	}
	body, err := render.CompileBody("body", c.Body, w.contentType)
	bad.Join(err)
	w.body = body
}

// reservedHeaders maps the headers that the sink sets itself to the hint in the error.
var reservedHeaders = map[string]string{
	"Content-Type":      "it follows from format, or write content_type beside body",
	"User-Agent":        "it names this program",
	"Webhook-Id":        "it names the notification",
	"Webhook-Timestamp": "it is signed",
	"Webhook-Signature": "it follows from secret",
	"Idempotency-Key":   "write idempotency_key: true",
	"X-Idempotency-Key": "write idempotency_key: true, which sends Idempotency-Key",
}

// connectionHeaders are the headers that belong to a connection; HTTP itself sets them.
var connectionHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// checkHeader says why a header cannot be sent with every request.
func checkHeader(name string, value registry.Secret) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return errors.New(`this is not the name of a header; use letters, digits and "-"`)
	case reservedHeaders[canonical] != "":
		return fmt.Errorf("this header cannot be given: %s", reservedHeaders[canonical])
	case slices.Contains(connectionHeaders, canonical):
		return errors.New("this header cannot be given: it belongs to the connection")
	case strings.HasPrefix(canonical, "Ce-"):
		return errors.New("this header cannot be given: those that begin with ce- are attributes of a CloudEvent")
	}
	return checkValue(value.Reveal())
}

// checkValue says why value cannot be that of a header, without quoting it.
func checkValue(value string) error {
	switch {
	case strings.Trim(value, " \t") == "":
		return errors.New("it is empty; give it a value, or leave the header out")
	case strings.ContainsAny(value, "\r\n"):
		return errors.New("its value has a line break, which no header can have; is the file or variable right?")
	case strings.Trim(value, " \t") != value:
		return errors.New("its value begins or ends with white space, which does not arrive; remove that")
	}
	for _, r := range value {
		if r != '\t' && (r < ' ' || r > '~') {
			return errors.New("its value has a character that is not plain ASCII, which receivers read in different ways; encode it")
		}
	}
	return nil
}

// setHeaders sets the headers of c. It checks them, and the credentials.
func (w *Webhook) setHeaders(c Config, bad *outbound.Mistakes) {
	outbound.Headers(bad, c.Headers, checkHeader, func(name string, value registry.Secret) {
		w.headers.Set(name, value.Reveal())
		w.sender.Secrets.Add(value.Reveal())
	})
	if w.bearer != "" {
		if err := checkBearer(w.bearer); err != nil {
			bad.Add("bearer", err)
			return
		}
		w.sender.Secrets.Add(w.bearer)
	}
	w.checkAuthorization(bad)
}

// checkBearer says why token cannot be sent as one, without quoting it.
func checkBearer(token string) error {
	if err := checkValue(token); err != nil {
		return err
	}
	switch {
	case strings.EqualFold(token[:min(len(token), len("bearer "))], "bearer "):
		return errors.New(`the word "Bearer" is added; write only the token`)
	case strings.ContainsAny(token, " \t"):
		return errors.New("its value has a blank, which no token can have")
	}
	return nil
}

// checkAuthorization refuses more than one source of the header Authorization.
func (w *Webhook) checkAuthorization(bad *outbound.Mistakes) {
	user := w.url != nil && w.url.User != nil
	given := w.headers.Get("Authorization") != ""
	switch {
	case w.bearer != "" && given:
		bad.Addf("bearer", "headers has Authorization already; give one of them")
	case w.bearer != "" && user:
		bad.Addf("bearer", "url has a user already, which is sent as Authorization; give one of them")
	case given && user:
		bad.Addf("headers.Authorization", "url has a user already, which is sent as that; give one of them")
	}
}
