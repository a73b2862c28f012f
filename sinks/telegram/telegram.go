// Package telegram is the sink that sends notifications to a chat of Telegram through a
// bot.
//
// Ask @BotFather for a bot: /newbot, then a name; it answers with the token, which is a secret.
// The recipient must press Start in a chat with the bot, add it to the group, or make it an
// administrator of the channel. Write something there; the answer of
// api.telegram.org/botTOKEN/getUpdates then contains the ID of the chat. A public channel or
// group can also be named, as @example.
//
// A message says in its first line what was found, then links to the page, and shows each
// difference as a quote with the keyword bold and removed text struck through. Telegram accepts
// 4,096 characters in a message; differences that do not fit are counted as "and n more".
// Telegram parses no markup, because formats are sent beside the text. Telegram makes links of
// mentions, commands, hashtags and addresses; in the text of a page an invisible character
// prevents that.
//
// Telegram lets a bot write once a second to a person and 20 times a minute to a group. A
// notification counts as delivered once Telegram has answered with the ID of the message.
// There is no way to give Telegram the ID of a notification, so one whose answer is lost may
// appear twice.
package telegram

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

const defaultAPI = "https://api.telegram.org"

// Config is the configuration of a Telegram sink.
type Config struct {
	// Token is the token of the bot, such as 123456:ABC-DEF1234ghIkl, from @BotFather.
	// Required.
	Token registry.Secret `yaml:"token"`
	// ChatID is the chat to write to, in quotes: its number, such as "123456789" for a person
	// and "-1001234567890" for a group, or the name of a public channel or group, such as
	// "@example". Required.
	ChatID string `yaml:"chat_id"`
	// MessageThreadID is the number of the topic to write to, in a group with topics. Default:
	// the general topic.
	MessageThreadID int64 `yaml:"message_thread_id"`
	// APIURL is the URL of the Bot API, if you run your own server. Default:
	// https://api.telegram.org.
	APIURL string `yaml:"api_url"`
	// Template is the template of a message, instead of the built-in layout: plain text, cut at
	// 4,096 characters.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

var (
	tokenPattern = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`)
	chatPattern  = regexp.MustCompile(`^(-?[0-9]{1,20}|@[A-Za-z][A-Za-z0-9_]*)$`)
)

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors.
func New(c Config) (*Telegram, error) {
	var bad outbound.Mistakes
	token := c.Token.Reveal()
	switch {
	case token == "":
		bad.Addf("token", "a token is required; @BotFather gives one")
	case !tokenPattern.MatchString(token):
		bad.Addf("token", "this is not the token of a bot, which is a number, a colon, and letters and digits")
	}
	if !chatPattern.MatchString(c.ChatID) {
		bad.Addf("chat_id", "write the number of a chat, such as \"-1001234567890\", or @ and the name of a public one")
	}
	if c.MessageThreadID < 0 {
		bad.Addf("message_thread_id", "%d is not the number of a topic, which is above 0", c.MessageThreadID)
	}
	u, err := outbound.ParseURL(cmp.Or(c.APIURL, defaultAPI), defaultAPI)
	bad.Add("api_url", err)
	sender, text := bad.Sender(c.Connection), bad.Template("template", c.Template)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	_, secret, _ := strings.Cut(token, ":")
	return &Telegram{
		endpoint: outbound.NewEndpoint(sendMessageURL(u, token), sender, token, secret), chat: c.ChatID, thread: c.MessageThreadID, template: text,
	}, nil
}

// sendMessageURL returns the URL of sendMessage, the only method that is called.
func sendMessageURL(api *url.URL, token string) *url.URL {
	return api.JoinPath("bot"+token, "sendMessage")
}

// Register registers the kind of sink "telegram" with r. Its sinks share connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "telegram", func(c *Config) *registry.Connection { return &c.Connection }, New)
}

// Telegram sends notifications to one chat. It is safe for concurrent use.
type Telegram struct {
	endpoint *outbound.Endpoint
	chat     string
	thread   int64
	template render.Template
}

var _ pipeline.Sink = (*Telegram)(nil)

// Rate returns Telegram's limits for a bot: one message a second to a person, 20 a minute to a
// group or channel.
func (s *Telegram) Rate() (perSecond float64, burst int) {
	if strings.HasPrefix(s.chat, "-") || strings.HasPrefix(s.chat, "@") {
		return 20.0 / 60, 3
	}
	return 1, 3
}

// Host returns the host that messages are sent to, with its port.
func (s *Telegram) Host() string { return s.endpoint.Host() }

// Deliver sends n with formats, or as short plain text if Telegram refuses that. It follows no
// redirects, and reads no more than 128 KB of the answer.
func (s *Telegram) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	rich, entities := formatMessage(m)
	if text, ok := s.template.RenderFor(ctx, n, render.Values(m, breakLinks)); ok {
		rich, entities = render.Cut(text, maxText, render.UTF16), nil
	}
	return outbound.Insist(ctx, s.endpoint.Posting(s.classify), s.encodeMessage(rich, entities), func() []byte {
		return s.encodeMessage(breakLinks(render.Cut(m.Plain(), maxPlain, escapedLen)), nil)
	})
}

// encodeMessage returns the body of a request.
func (s *Telegram) encodeMessage(text string, entities []entity) []byte {
	return outbound.JSON(struct {
		Chat     string      `json:"chat_id"`
		Thread   int64       `json:"message_thread_id,omitempty"`
		Text     string      `json:"text"`
		Entities []entity    `json:"entities,omitempty"`
		Preview  linkPreview `json:"link_preview_options"`
	}{s.chat, s.thread, text, entities, linkPreview{Disabled: true}})
}

type linkPreview struct {
	Disabled bool `json:"is_disabled"`
}

// answer is what the Bot API says.
type answer struct {
	OK     bool `json:"ok"`
	Result struct {
		MessageID int64 `json:"message_id"`
	} `json:"result"`
	Code        int    `json:"error_code"`
	Description string `json:"description"`
	Parameters  struct {
		RetryAfter float64 `json:"retry_after"` // in seconds
		MigrateTo  int64   `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// classify classifies the answer of Telegram, which has the message or an error.
func (s *Telegram) classify(a *outbound.Answer) error {
	said := outbound.Read[answer](a.Body)
	err := a.Err()
	switch {
	case err == nil && said.OK && said.Result.MessageID != 0:
		return nil
	case err == nil && said.Code == 0:
		err = a.Without("the ID of a message")
	case err == nil:
		err = fmt.Errorf("answered %d, but not that all is well", a.Status)
	}
	if said.OK || said.Description == "" {
		return err
	}
	switch code := said.Code; { // what is not from Telegram has none
	case said.Parameters.MigrateTo != 0:
		err = failure.Permanent(fmt.Errorf("%w: the group has become a supergroup; set chat_id to %d", err, said.Parameters.MigrateTo))
	case code == http.StatusTooManyRequests:
		err = outbound.Limit(err, a, said.Parameters.RetryAfter)
	case code == http.StatusUnauthorized:
		err = a.Denied(outbound.TokenRefused)
	case code == http.StatusForbidden, code == http.StatusBadRequest && isForbidden(said.Description):
		err = a.Denied("the bot may not write to the chat")
	case code == http.StatusBadRequest && strings.Contains(said.Description, "chat not found"):
		err = failure.Gone(err)
	}
	// The description begins with the name of the status, which err tells already.
	reason := strings.TrimPrefix(said.Description, http.StatusText(said.Code))
	return s.endpoint.Because(err, strings.TrimPrefix(reason, ": "))
}

// isForbidden reports whether a description says that the bot may not write to the chat.
func isForbidden(description string) bool {
	for _, words := range []string{"not enough rights", "have no rights", "CHAT_WRITE_FORBIDDEN"} {
		if strings.Contains(description, words) {
			return true
		}
	}
	return false
}
