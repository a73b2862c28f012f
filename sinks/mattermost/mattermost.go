// Package mattermost is the sink that posts notifications to a channel of Mattermost
// through an incoming webhook.
//
// The URL of the webhook comes from the product menu: Integrations, Incoming Webhooks, Add
// Incoming Webhook. A system administrator must have enabled them in the System Console,
// Integration Management. Everybody who has the URL can post, so it is a secret. A server in a
// private network must be permitted by allow.sinks or --allow.
//
// A message says in its first line what was found, then links to the page, and shows each
// difference as a quote with the keyword bold and removed text struck through. Mattermost
// accepts 16,383 characters in a post; differences that do not fit are counted as "and n more".
// The text of a page is escaped, and no message mentions anybody: an invisible character breaks
// "@channel", "@here", "@all" and names. Mattermost still notifies a user whose own keywords
// are in a message.
//
// A notification counts as delivered once Mattermost has answered "ok". The ID of the
// notification is the property vokter_id of the post; Mattermost does not drop a second
// post with the same one.
package mattermost

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

// Config is the configuration of a Mattermost sink.
type Config struct {
	// WebhookURL is the URL of an incoming webhook, such as
	// https://mattermost.example.com/hooks/xxxgeneratedkeyxxx, from Integrations, Incoming
	// Webhooks. Required.
	WebhookURL registry.Secret `yaml:"webhook_url"`
	// Channel is the channel to post to instead of the webhook's own: the name in the channel's
	// URL, such as town-square, or @ and a user's name. A webhook that is locked to its channel
	// refuses it. Default: the webhook's channel.
	Channel string `yaml:"channel"`
	// Username is shown as the author of the posts, if the server lets integrations override
	// it. Default: that of the webhook.
	Username string `yaml:"username"`
	// Template is the template of a message, instead of the built-in layout: Markdown, cut at
	// 16,383 characters. The values in it are escaped. It cannot mention anybody.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors.
func New(c Config) (*Mattermost, error) {
	var bad outbound.Mistakes
	u := bad.URL("webhook_url", c.WebhookURL, "https://mattermost.example.com/hooks/xxxgeneratedkeyxxx")
	if !outbound.Token(c.Channel) {
		bad.Addf("channel", "write the name in the channel's URL, such as town-square, or @ and a user's name")
	}
	if render.Clean(c.Username) != c.Username {
		bad.Addf("username", "write one line, without spaces around it")
	}
	sender, text := bad.Sender(c.Connection), bad.Template("template", c.Template)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return &Mattermost{outbound.NewEndpoint(u, sender), c.Channel, c.Username, text}, nil
}

// Register registers the kind of sink "mattermost" with r. Its sinks share connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "mattermost", func(c *Config) *registry.Connection { return &c.Connection }, New)
}

// Mattermost posts notifications to one channel. It is safe for concurrent use.
type Mattermost struct {
	endpoint          *outbound.Endpoint
	channel, username string
	template          render.Template
}

var _ pipeline.Sink = (*Mattermost)(nil)

// Limits of Mattermost, and the length of the plain text, in characters.
const (
	maxPost  = 16383
	maxPlain = 1000
)

// budget is below the limit, because nobody reads that much in a chat. A special character
// counts as seven, the most that it needs when escaped.
var budget = render.Budget{
	Total: 12_000, Lines: 40, Line: 400, LineCost: render.LineCost,
	Length: func(s string) int { return render.Runes(s) + 6*specialChars.Count(s) },
}

// message is the body of a request to an incoming webhook.
type message struct {
	Text     string `json:"text"`
	Channel  string `json:"channel,omitempty"`
	Username string `json:"username,omitempty"`
	Props    props  `json:"props"`
}

type props struct {
	ID string `json:"vokter_id"`
}

// Host returns the host that messages are sent to, with its port.
func (s *Mattermost) Host() string { return s.endpoint.Host() }

// Deliver posts n, or short plain text if Mattermost refuses that. It follows no redirects, and
// reads no more than 128 KB of the answer.
func (s *Mattermost) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	rich := formatMarkdown(m)
	values := func(s string) string {
		if s == m.URL {
			return strings.ReplaceAll(render.Target.Replace(s), "@", "%40") // or mentionBreaker would change it
		}
		return escape(s)
	}
	if text, ok := s.template.RenderFor(ctx, n, values); ok {
		rich = mentionBreaker.Replace(text)
	}
	say := func(text string) []byte {
		return outbound.JSON(message{
			Text: render.Cut(text, maxPost, render.Runes), Channel: s.channel, Username: s.username,
			Props: props{n.ID},
		})
	}
	return outbound.Insist(ctx, s.endpoint.Posting(s.classify), say(rich), func() []byte { return say(render.AsPlain(m, maxPlain, escape)) })
}

// formatMarkdown returns m as the text of a post.
func formatMarkdown(m render.Message) string {
	parts := []string{"**" + escape(m.Headline) + "**"}
	switch {
	case m.URL != "":
		parts[0] += "\n[" + escape(m.Title) + "](<" + strings.ReplaceAll(render.Target.Replace(m.URL), "&", "&amp;") + ">)"
	case m.Title != "":
		parts[0] += "\n" + render.Literal(m.Title, escape)
	}
	if body := render.AsMarkdown(m, escape); body != "" {
		parts = append(parts, body)
	}
	return strings.Join(parts, "\n\n")
}

// classify returns the error in Mattermost's answer, or nil if it is "ok".
func (s *Mattermost) classify(a *outbound.Answer) error {
	err := a.Err()
	if err == nil {
		if string(a.Body) == "ok" {
			return nil
		}
		return a.Without(`the word "ok"`)
	}
	type answer struct {
		ID      string `json:"id"`
		Message string `json:"message"`
	}
	said := outbound.Read[answer](a.Body)
	switch denied := a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden; {
	case a.Status < 500 && !denied && goneErrors[said.ID]:
		err = failure.Gone(err)
	case denied && said.ID != "":
		err = a.Denied("the webhook is refused")
	}
	return s.endpoint.Because(err, said.Message)
}

// goneErrors are Mattermost's error IDs for a webhook or channel that does not exist. With status 403
// they mean that the webhook may not write there.
var goneErrors = map[string]bool{
	"web.incoming_webhook.invalid.app_error": true,
	"web.incoming_webhook.channel.app_error": true,
	"web.incoming_webhook.user.app_error":    true,
	"app.channel.get.existing.app_error":     true,
}

// specialChars are the characters with a meaning within a line of Mattermost's Markdown, or in
// mentions, channels, hashtags, emoji and addresses.
var specialChars = render.Chars("\\`*_<&[]~$.@#:")

// charEntities replace characters for which a backslash does not always work.
var charEntities = map[byte]string{'<': "&lt;", '&': "&amp;", '[': "&#91;", ']': "&#93;", '~': "&#126;", '$': "&#36;"}

// escape escapes s. Where neither a backslash nor an entity works, it adds an invisible
// character.
func escape(s string) string {
	return render.EscapeChars(s, specialChars, func(b *strings.Builder, before rune, char byte, after rune) {
		joins := render.Joins(before, after)
		switch char {
		case '\\', '`', '*', '_':
			b.WriteByte('\\')
			b.WriteByte(char)
		case '.': // of an address
			if joins && render.Word(before) {
				b.WriteByte('\\')
			}
			b.WriteByte(char)
		case '$': // two of them may enclose a formula, but no price
			if after >= '0' && after <= '9' {
				b.WriteByte(char)
				break
			}
			b.WriteString(charEntities[char])
		case '@', '#', ':':
			b.WriteByte(char)
		default:
			b.WriteString(charEntities[char])
		}
		if char == '@' || joins && (char == '#' || char == '~' || char == ':') || char == ':' && strings.ContainsRune("/+-()", after) {
			b.WriteString(render.Blank)
		}
	})
}

// mentionBreaker breaks mentions in the output of a template, also those in Slack's form.
var mentionBreaker = strings.NewReplacer("@", "@"+render.Blank, "<!", "<"+render.Blank+"!")
