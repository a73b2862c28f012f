// Package discord is the sink that posts notifications to a channel of Discord through a
// webhook.
//
// The URL of the webhook comes from the channel's settings: Edit Channel, Integrations,
// Webhooks, New Webhook, Copy Webhook URL. Whoever has it can post to the channel, so it
// is a secret.
//
// A message says in its first line what was found, and in an embed, which links to the page,
// shows each difference as a quote with the keyword bold and removed text struck through.
// Discord takes 4,096 characters in an embed; what does not fit is counted as "and n more". The
// text of a page is escaped, and no message can mention anybody.
//
// Discord lets a webhook post about 30 messages a minute. A notification counts as
// delivered once Discord has answered with the ID of the message. There is no way to give
// Discord the ID of a notification, so one whose answer is lost may appear twice.
package discord

import (
	"context"
	"net/http"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is the configuration of a Discord sink.
type Config struct {
	// WebhookURL is the URL of the channel's webhook, such as
	// https://discord.com/api/webhooks/1234567890/AbC-123, from Edit Channel, Integrations,
	// Webhooks. "?thread_id=123" behind it posts to a thread of that channel. Required.
	WebhookURL registry.Secret `yaml:"webhook_url"`
	// Template is the template of a message, instead of the built-in layout: Discord's
	// Markdown, cut at 4,096 characters. The values in it are escaped. It cannot mention
	// anybody.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors.
func New(c Config) (*Discord, error) {
	var bad outbound.Mistakes
	u := bad.URL("webhook_url", c.WebhookURL, "https://discord.com/api/webhooks/1234567890/AbC-123")
	sender, text := bad.Sender(c.Connection), bad.Template("template", c.Template)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	query := u.Query()
	query.Set("wait", "true") // else Discord does not say whether there is a message
	u.RawQuery = query.Encode()
	return &Discord{outbound.NewEndpoint(u, sender), text}, nil
}

// Register registers the kind of sink "discord" with r. Its sinks share connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "discord", func(c *Config) *registry.Connection { return &c.Connection }, New)
}

// Discord posts notifications to one channel. It is safe for concurrent use.
type Discord struct {
	endpoint *outbound.Endpoint
	template render.Template
}

var _ pipeline.Sink = (*Discord)(nil)

// Rate is what Discord lets a webhook do: 30 messages a minute, five of them at once.
func (d *Discord) Rate() (perSecond float64, burst int) { return 0.5, 5 }

// Host returns the host that messages are sent to, with its port.
func (d *Discord) Host() string { return d.endpoint.Host() }

// Deliver posts n as an embed, or as short plain text where Discord refuses that. It
// follows no redirects, and reads no more than 128 KB of the answer.
func (d *Discord) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	rich := formatEmbed(m)
	if text, ok := d.template.RenderFor(ctx, n, render.Values(m, escape)); ok {
		rich = message{Embeds: []embed{{Description: render.Cut(text, maxDescription, render.UTF16)}}, Mentions: noMentions}
	}
	return outbound.Insist(ctx, d.endpoint.Posting(d.classify), outbound.JSON(rich), func() []byte { return outbound.JSON(formatPlain(m)) })
}

// classify classifies the answer of Discord, which has the message or an error.
func (d *Discord) classify(a *outbound.Answer) error {
	type answer struct {
		ID         string  `json:"id"`
		Code       int     `json:"code"`
		Message    string  `json:"message"`
		RetryAfter float64 `json:"retry_after"` // in seconds
	}
	said := outbound.Read[answer](a.Body)
	err := a.Err()
	switch {
	case err == nil && said.ID != "":
		return nil
	case err == nil:
		return a.Without("the ID of a message")
	case a.Status == http.StatusTooManyRequests:
		err = outbound.Limit(err, a, said.RetryAfter)
	case said.Code == codeUnknownChannel || said.Code == codeUnknownWebhook:
		err = failure.Gone(err)
	}
	return d.endpoint.Because(err, said.Message)
}

// Discord's error codes for a webhook that no longer exists.
const (
	codeUnknownChannel = 10003
	codeUnknownWebhook = 10015
)

// specialChars holds the characters with a meaning within a line of Discord's Markdown. A colon
// begins the name of an emoji and ends the scheme of a URL.
var specialChars = render.Chars("\\`*_~|<[]@:")

// escape makes s literal. Discord shows an escaped character as it is, and it begins no link,
// mention or emoji.
func escape(s string) string {
	return render.EscapeChars(s, specialChars, func(b *strings.Builder, before rune, char byte, after rune) {
		if char != ':' || render.Joins(before, after) || strings.ContainsRune("/+-", after) {
			b.WriteByte('\\')
		}
		b.WriteByte(char)
	})
}

// The limits of Discord and the length of plain text, in UTF-16 code units. A text never has
// more characters than code units.
const (
	maxContent     = 2000
	maxTitle       = 256
	maxDescription = 4096
	maxPlain       = 1000
)

// budget keeps the description within its bound: what is not in it is counted too.
var budget = render.Budget{
	Total: maxDescription - 64, Lines: 20, LineCost: render.LineCost,
	Length: func(s string) int { return render.UTF16(s) + specialChars.Count(s) }, // at least as much as it takes
}

// message is the body of a request to the webhook.
type message struct {
	Content string  `json:"content,omitempty"`
	Embeds  []embed `json:"embeds,omitempty"`
	// Mentions lists the mentions that are allowed in the message.
	Mentions allowedMentions `json:"allowed_mentions"`
}

type allowedMentions struct {
	Parse []string `json:"parse"`
}

type embed struct {
	Title       string `json:"title,omitempty"`
	URL         string `json:"url,omitempty"`
	Description string `json:"description,omitempty"`
}

// noMentions allows no mentions, whatever the text contains.
var noMentions = allowedMentions{Parse: []string{}}

// formatEmbed returns m with its differences in an embed.
func formatEmbed(m render.Message) message {
	e := embed{
		Title: render.Cut(render.Literal(m.Title, escape), maxTitle, render.UTF16), URL: m.URL,
		Description: render.Cut(render.AsMarkdown(m, escape), maxDescription, render.UTF16),
	}
	said := message{Content: render.Cut(render.Literal(m.Headline, escape), maxContent, render.UTF16), Mentions: noMentions}
	if e.Title != "" || e.Description != "" { // Discord takes no empty one
		said.Embeds = []embed{e}
	}
	return said
}

// formatPlain returns m as short text.
func formatPlain(m render.Message) message {
	return message{Content: render.AsPlain(m, maxPlain, escape), Mentions: noMentions}
}
