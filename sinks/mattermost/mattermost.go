package mattermost

import (
	"context"
	"net/http"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Mattermost posts notifications to one channel. It is safe for concurrent use.
type Mattermost struct {
	endpoint          *outbound.Endpoint
	channel, username string
	template          render.Template
}

var _ pipeline.Sink = (*Mattermost)(nil)

// Bounds of Mattermost, and how much plain text says, in characters.
const (
	maxPost  = 16383
	maxPlain = 1000
)

// budget is below the bound, since nobody reads as much in a chat. A special character is
// counted as seven, the most that one takes.
var budget = render.Budget{
	Total: 12_000, Lines: 40, Line: 400, LineCost: render.LineCost,
	Length: func(s string) int { return render.Runes(s) + 6*special.Count(s) },
}

// message is what an incoming webhook takes.
type message struct {
	Text     string `json:"text"`
	Channel  string `json:"channel,omitempty"`
	Username string `json:"username,omitempty"`
	Props    props  `json:"props"`
}

type props struct {
	ID string `json:"vokter_id"`
}

// Deliver posts n, or short plain text where Mattermost refuses that. It follows no
// redirects, and reads no more than 128 KB of the answer.
func (s *Mattermost) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	rich := markdown(m)
	values := func(s string) string {
		if s == m.URL {
			return strings.ReplaceAll(render.Target.Replace(s), "@", "%40") // else it would be broken as a mention
		}
		return escape(s)
	}
	if text, ok := s.template.RenderFor(ctx, n, values); ok {
		rich = unmentioned.Replace(text)
	}
	say := func(text string) []byte {
		return outbound.JSON(message{
			Text: render.Cut(text, maxPost, render.Runes), Channel: s.channel, Username: s.username,
			Props: props{n.ID},
		})
	}
	return outbound.Insist(ctx, s.endpoint.Posting(s.verdict), say(rich), func() []byte { return say(render.AsPlain(m, maxPlain, escape)) })
}

// markdown is m as a post.
func markdown(m render.Message) string {
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

// verdict reads what Mattermost answered: "ok", or what is wrong.
func (s *Mattermost) verdict(a *outbound.Answer) error {
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
	case a.Status < 500 && !denied && gone[said.ID]:
		err = pipeline.Gone(err)
	case denied && said.ID != "":
		err = a.Denied("the webhook is refused")
	}
	return s.endpoint.Because(err, said.Message)
}

// gone are the errors of Mattermost that say that there is no such webhook or channel. With the
// status 403 they say that the webhook may not write there.
var gone = map[string]bool{
	"web.incoming_webhook.invalid.app_error": true,
	"web.incoming_webhook.channel.app_error": true,
	"web.incoming_webhook.user.app_error":    true,
	"app.channel.get.existing.app_error":     true,
}
