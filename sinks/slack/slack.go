// Package slack posts notifications to a channel of Slack: as a bot, by its token, or
// through an incoming webhook.
//
// The text of a page goes into text elements of rich_text blocks, where Slack interprets
// nothing: no mention, no link, no markup, no emoji. Nothing is unfurled. A message that
// Slack refuses because of how it is made is posted once more as one line of plain text.
//
// A notification counts as delivered only when Slack confirms it: with a token by the ts of the
// message, through a webhook by the answer "ok". Slack does not drop repeated messages, so a
// message may appear twice if an answer is lost; with a token its metadata holds the
// notification's ID.
package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	slackgo "github.com/slack-go/slack"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is the configuration of a Slack sink: either Token and Channel,
// or WebhookURL.
type Config struct {
	// Token is the token of a bot, such as xoxb-1234567890-abcdef. Its app needs the scope
	// chat:write, and the bot must be a member of the channel.
	Token registry.Secret `yaml:"token"`
	// Channel is the channel to which the bot posts: its ID, such as C0123456789, or its name,
	// such as "#alerts". The ID stays the same when the channel is renamed. The channel of a
	// subscription takes its place, so that one sink serves many channels.
	Channel string `yaml:"channel"`
	// Thread is whether each document has a thread, a new one each day: what it has to say
	// after the first message of the thread comes as a reply to that. The first reply is shown
	// in the channel too. Default: false. It needs a token.
	Thread bool `yaml:"thread"`
	// APIURL is where the methods of Slack's API are, for tests and gateways. Default:
	// https://slack.com/api/. It goes with a token.
	APIURL string `yaml:"api_url"`
	// SigningSecret is the signing secret of the app. With it each notification has buttons, and
	// the command /vokter works: see docs/slack.md. Default: none, and nobody can act in Slack. It
	// needs a token.
	SigningSecret registry.Secret `yaml:"signing_secret"`
	// WebhookURL is the URL of an incoming webhook, such as
	// https://hooks.slack.com/services/T000/B000/XXXX, which belongs to one channel. It is a
	// secret: everybody who has it can post.
	WebhookURL registry.Secret `yaml:"webhook_url"`
	// Template is what is said of each notification in place of the built-in layout, in
	// Slack's mrkdwn, such as "*{{.title}}*: {{range .diffs}}{{.event}} {{.keyword}} {{end}}".
	// The values in it are escaped, so that a page mentions nobody and hides no link, but
	// asterisks and the like still format them. What comes to more than 3,800 characters is
	// laid out as usual.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors.
func New(c Config) (*Slack, error) {
	s := &Slack{token: c.Token.Reveal(), channel: c.Channel, thread: c.Thread, signingSecret: c.SigningSecret.Reveal()}
	var bad outbound.Mistakes
	bad.Unset("signing_secret", c.SigningSecret)
	s.sender, s.template = bad.Sender(c.Connection), bad.Template("template", c.Template)
	s.sender.BodyDecides = true
	switch {
	case !c.WebhookURL.IsZero():
		s.configureWebhook(c, &bad)
	case c.Token.IsZero() && c.Channel == "":
		bad.Addf("token", "write either token and channel, or webhook_url")
	default:
		s.configureBot(c, &bad)
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// configureBot configures s to post to a channel, an ID or "#" and a name, as the bot of a token.
func (s *Slack) configureBot(c Config, bad *outbound.Mistakes) {
	s.send = s.postAsBot
	s.sender.Secrets.Add(s.token)
	s.sender.Secrets.Add(s.signingSecret)
	if !strings.HasPrefix(s.token, "xoxb-") && !strings.HasPrefix(s.token, "xoxe.xoxb-") {
		bad.Addf("token", "this is not the token of a bot, which begins with xoxb-")
	} else {
		bad.Token("token", c.Token)
	}
	if s.channel == "" || strings.TrimSpace(s.channel) != s.channel {
		bad.Addf("channel", `a channel is required: its ID such as C0123456789, or its name such as "#alerts"`)
	}
	u, err := outbound.ParseURL(cmp.Or(c.APIURL, defaultAPI), defaultAPI)
	switch {
	case err != nil:
		bad.Add("api_url", err)
	case u.User != nil || u.RawQuery != "":
		bad.Addf("api_url", "it must have neither a user name nor a query")
	default:
		s.sender.Secrets.AddURL(u)
		s.apiURL = strings.TrimSuffix(u.String(), "/") + "/"
	}
}

// configureWebhook configures s to post through an incoming webhook.
func (s *Slack) configureWebhook(c Config, bad *outbound.Mistakes) {
	if !c.Token.IsZero() {
		bad.Addf("token", "write either token and channel, or webhook_url, not both")
	}
	if c.Channel != "" {
		bad.Addf("channel", "a webhook_url belongs to one channel already; a channel goes with a token")
	}
	if c.Thread {
		bad.Addf("thread", "threads need a token, since a webhook does not tell which message it posted")
	}
	if !c.SigningSecret.IsZero() {
		bad.Addf("signing_secret", "buttons and commands need a token; a webhook_url has neither")
	}
	if c.APIURL != "" {
		bad.Addf("api_url", "it goes with a token, not with a webhook_url")
	}
	s.send = s.postToWebhook
	u := bad.URL("webhook_url", c.WebhookURL, "https://hooks.slack.com/services/T000/B000/XXXX")
	if u == nil {
		return
	}
	s.webhookURL = u
	s.sender.Secrets.AddURL(u)
	s.sender.Secrets.Add(u.Path[strings.LastIndexByte(u.Path, '/')+1:])
}

// Register registers the kind of sink "slack" with r. Its sinks share connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "slack", func(c *Config) *registry.Connection { return &c.Connection }, New)
}

// defaultAPI is where the methods of Slack's API are.
const defaultAPI = "https://slack.com/api/"

var _ pipeline.ChannelSink = (*Slack)(nil)

// Slack is a channel of Slack to which notifications are posted.
type Slack struct {
	sender   outbound.Sender
	template render.Template
	// send posts one message, as a bot or through a webhook.
	send func(context.Context, message) error

	// apiURL, token, channel and thread are those of a bot.
	apiURL  string
	token   string
	channel string
	thread  bool
	// signingSecret is the signing secret of the app, or empty.
	signingSecret string
	// webhookURL is the URL of a webhook.
	webhookURL *url.URL
}

// TakesChannel returns an error for a webhook, which belongs to one channel.
func (s *Slack) TakesChannel() error {
	if s.webhookURL != nil {
		return errors.New("its webhook_url belongs to one channel; give it the token of a bot in place of that, or leave the channel out")
	}
	return nil
}

// Rate is what Slack allows a channel: one message a second, and a few at once.
func (s *Slack) Rate() (perSecond float64, burst int) { return 1, 3 }

// Host returns the host that messages are sent to, with its port.
func (s *Slack) Host() string {
	if s.webhookURL != nil {
		return s.webhookURL.Host
	}
	u, err := url.Parse(s.apiURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Deliver posts n. It follows no redirects, and reads no more than 128 KB of an answer.
// Where Slack refuses the message because of how it is made, it is posted as plain text.
func (s *Slack) Deliver(ctx context.Context, n pipeline.Notification) error {
	l := render.MessageOf(n, budget)
	m := message{id: n.ID, channel: n.Channel, text: fallbackText(l), blocks: layOut(l)}
	if text, ok := s.renderTemplate(ctx, n); ok {
		m.text, m.blocks, m.isMrkdwn = text, nil, true
	}
	if buttons := s.buttons(n, l); len(buttons) > 0 && len(m.blocks) > 0 {
		m.blocks = append(m.blocks, buttons...)
	}
	if n.Channel != "" && s.webhookURL != nil {
		pipeline.AttemptFrom(ctx).Degraded("posted to the channel of the webhook: a channel of a subscription needs a sink with a token")
	}
	err := s.send(ctx, m)
	if n.Channel != "" && isChannelError(err) { // others go on
		return failure.Permanent(fmt.Errorf("channel %s: %s", n.Channel, err.Error()))
	}
	if class, _ := failure.ClassOf(err); class != failure.ClassRefused {
		return err
	}
	if again := s.send(ctx, message{channel: n.Channel, text: fallbackText(l)}); again != nil {
		return fmt.Errorf("%s; and as plain text: %w", err.Error(), again) // the class is that of again
	}
	pipeline.AttemptFrom(ctx).Degraded("posted without its layout, since Slack " + err.Error())
	return nil
}

// renderTemplate renders the template for n, in mrkdwn. ok is false if the built-in layout is to be
// used.
func (s *Slack) renderTemplate(ctx context.Context, n pipeline.Notification) (text string, ok bool) {
	text, ok = s.template.RenderFor(ctx, n, render.Mrkdwn)
	if ok && render.UTF16(text) > maxTemplateText {
		pipeline.AttemptFrom(ctx).Degraded(fmt.Sprintf("the template says more than %d characters, at which Slack would split it", maxTemplateText))
		return "", false
	}
	return text, ok
}

// webhookPayload is the body for an incoming webhook. It has no place for our ID.
type webhookPayload struct {
	Text        string          `json:"text"`
	Blocks      []slackgo.Block `json:"blocks,omitempty"`
	Markup      bool            `json:"mrkdwn"`
	UnfurlLinks bool            `json:"unfurl_links"`
	UnfurlMedia bool            `json:"unfurl_media"`
}

// postToWebhook posts m through the webhook.
func (s *Slack) postToWebhook(ctx context.Context, m message) error {
	body, err := json.Marshal(webhookPayload{Text: m.text, Blocks: m.blocks, Markup: m.isMrkdwn})
	if err != nil {
		return failure.Permanent(fmt.Errorf("encoding the message: %w", err))
	}
	h := http.Header{"Content-Type": {"application/json"}}
	a, err := s.sender.Do(ctx, http.MethodPost, s.webhookURL, h, body)
	if err != nil {
		return err
	}
	said := string(a.Body)
	switch {
	case a.Status == http.StatusOK && said == "ok":
		return nil
	case a.Status != http.StatusOK:
		return statusError(a, strings.TrimSpace(said))
	}
	return a.Without(`the "ok" of a webhook`)
}
