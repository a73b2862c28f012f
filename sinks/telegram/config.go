package telegram

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

const defaultAPI = "https://api.telegram.org"

// Config is what stands in the configuration for a telegram.
type Config struct {
	// Token is that of the bot, such as 123456:ABC-DEF1234ghIkl, from @BotFather. Required.
	Token registry.Secret `yaml:"token"`
	// ChatID is the chat to write to, in quotes: its number, such as "123456789" for a person
	// and "-1001234567890" for a group, or the name of a public channel or group, such as
	// "@example". Required.
	ChatID string `yaml:"chat_id"`
	// MessageThreadID is the number of the topic to write to, in a group with topics. Default:
	// the general topic.
	MessageThreadID int64 `yaml:"message_thread_id"`
	// APIURL is where the Bot API is, for those who run a server of their own. Default:
	// https://api.telegram.org.
	APIURL string `yaml:"api_url"`
	// Template is what a message says, in place of the built-in layout: plain text, cut at
	// 4,096 characters.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

var (
	tokens = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`)
	chats  = regexp.MustCompile(`^(-?[0-9]{1,20}|@[A-Za-z][A-Za-z0-9_]*)$`)
)

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong.
func New(c Config) (*Telegram, error) {
	var errs []error
	wrong := func(field, reason string) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: reason})
	}
	token := c.Token.Reveal()
	switch {
	case token == "":
		wrong("token", "a token is needed; @BotFather gives one")
	case !tokens.MatchString(token):
		wrong("token", "this is not the token of a bot; it is a number, a colon, and letters and digits")
	}
	if !chats.MatchString(c.ChatID) {
		wrong("chat_id", "write the number of a chat, or @ and the name of a public one")
	}
	if c.MessageThreadID < 0 {
		wrong("message_thread_id", "a topic has a number above 0")
	}
	u, err := outbound.ParseURL(cmp.Or(c.APIURL, defaultAPI), defaultAPI)
	if err != nil {
		wrong("api_url", err.Error())
	}
	sender, err := outbound.NewSender(c.Connection)
	errs = append(errs, err)
	text, err := render.CompileTemplate("template", c.Template)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	_, secret, _ := strings.Cut(token, ":")
	return &Telegram{
		endpoint: outbound.NewEndpoint(method(u, token), sender, token, secret), chat: c.ChatID, thread: c.MessageThreadID, template: text,
	}, nil
}

// method is the URL of the only method that is called.
func method(api *url.URL, token string) *url.URL { return api.JoinPath("bot"+token, "sendMessage") }

// Register makes the configuration know the kind of sink "telegram". Its sinks share
// their connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "telegram", func(c *Config) *registry.Connection { return &c.Connection }, New)
}
