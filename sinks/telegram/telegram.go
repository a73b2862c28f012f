package telegram

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Telegram sends notifications to one chat. It is safe for concurrent use.
type Telegram struct {
	endpoint *outbound.Endpoint
	chat     string
	thread   int64
	template render.Template
}

var _ pipeline.Sink = (*Telegram)(nil)

// Rate is what Telegram lets a bot do: one message a second to a person, 20 a minute to a
// group or channel.
func (s *Telegram) Rate() (perSecond float64, burst int) {
	if strings.HasPrefix(s.chat, "-") || strings.HasPrefix(s.chat, "@") {
		return 20.0 / 60, 3
	}
	return 1, 3
}

// Deliver sends n with its formats, or short plain text where Telegram refuses that. It
// follows no redirects, and reads no more than 128 KB of the answer.
func (s *Telegram) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	rich, entities := formatted(m)
	if text, ok := s.template.RenderFor(ctx, n, render.Values(m, inert)); ok {
		rich, entities = render.Cut(text, maxText, render.UTF16), nil
	}
	return outbound.Insist(ctx, s.endpoint.Posting(s.verdict), s.message(rich, entities), func() []byte {
		return s.message(inert(render.Cut(m.Plain(), maxPlain, length)), nil)
	})
}

// message is the body of a request.
func (s *Telegram) message(text string, entities []entity) []byte {
	return outbound.JSON(struct {
		Chat     string   `json:"chat_id"`
		Thread   int64    `json:"message_thread_id,omitempty"`
		Text     string   `json:"text"`
		Entities []entity `json:"entities,omitempty"`
		Preview  preview  `json:"link_preview_options"`
	}{s.chat, s.thread, text, entities, preview{Disabled: true}})
}

type preview struct {
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

// verdict reads what Telegram answered: the message, or what is wrong.
func (s *Telegram) verdict(a *outbound.Answer) error {
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
		err = pipeline.Permanent(fmt.Errorf("%w: the group has become a supergroup; set chat_id to %d", err, said.Parameters.MigrateTo))
	case code == http.StatusTooManyRequests:
		err = outbound.Limit(err, a, said.Parameters.RetryAfter)
	case code == http.StatusUnauthorized:
		err = a.Denied(outbound.TokenRefused)
	case code == http.StatusForbidden, code == http.StatusBadRequest && forbidden(said.Description):
		err = a.Denied("the bot may not write to the chat")
	case code == http.StatusBadRequest && strings.Contains(said.Description, "chat not found"):
		err = pipeline.Gone(err)
	}
	// The description begins with the name of the status, which err tells already.
	reason := strings.TrimPrefix(said.Description, http.StatusText(said.Code))
	return s.endpoint.Because(err, strings.TrimPrefix(reason, ": "))
}

// forbidden reports whether a description says that the bot may not write to the chat.
func forbidden(description string) bool {
	for _, words := range []string{"not enough rights", "have no rights", "CHAT_WRITE_FORBIDDEN"} {
		if strings.Contains(description, words) {
			return true
		}
	}
	return false
}
