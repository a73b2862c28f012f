package discord

import (
	"context"
	"net/http"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Discord posts notifications to one channel. It is safe for concurrent use.
type Discord struct {
	endpoint *outbound.Endpoint
	template render.Template
}

var _ pipeline.Sink = (*Discord)(nil)

// Rate is what Discord lets a webhook do: 30 messages a minute, five of them at once.
func (d *Discord) Rate() (perSecond float64, burst int) { return 0.5, 5 }

// Deliver posts n as an embed, or as short plain text where Discord refuses that. It
// follows no redirects, and reads no more than 128 KB of the answer.
func (d *Discord) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	rich := embedded(m)
	if text, ok := d.template.RenderFor(ctx, n, render.Values(m, escape)); ok {
		rich = message{Embeds: []embed{{Description: render.Cut(text, maxDescription, render.UTF16)}}, Mentions: noMentions}
	}
	return outbound.Insist(ctx, d.endpoint.Posting(d.verdict), outbound.JSON(rich), func() []byte { return outbound.JSON(plain(m)) })
}

// verdict reads what Discord answered: the message, or what is wrong.
func (d *Discord) verdict(a *outbound.Answer) error {
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
	case said.Code == unknownChannel || said.Code == unknownWebhook:
		err = pipeline.Gone(err)
	}
	return d.endpoint.Because(err, said.Message)
}

// Codes of Discord for a webhook that is not there any more.
const (
	unknownChannel = 10003
	unknownWebhook = 10015
)

// special are the characters that mean something in Discord's Markdown within a line; a
// colon does before the name of an emoji and in the scheme of a URL.
var special = render.Chars("\\`*_~|<[]@:")

// escape makes s literal: Discord shows any such character behind a backslash as it is,
// and makes no link, mention or emoji of what it begins.
func escape(s string) string {
	return render.EscapeChars(s, special, func(b *strings.Builder, before rune, char byte, after rune) {
		if char != ':' || render.Joins(before, after) || strings.ContainsRune("/+-", after) {
			b.WriteByte('\\')
		}
		b.WriteByte(char)
	})
}
