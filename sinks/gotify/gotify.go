package gotify

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vokter/vokter/internal/chat"
	"github.com/vokter/vokter/internal/layout"
	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/internal/template"
	"github.com/vokter/vokter/pipeline"
)

// Gotify sends notifications as one application. It is safe for concurrent use.
type Gotify struct {
	endpoint *chat.Endpoint
	url      *url.URL
	header   http.Header
	priority int
	template template.Text
}

var _ pipeline.Sink = (*Gotify)(nil)

// maxText bounds a message, in runes: databases of Gotify's may hold 64 KB of it.
const maxText = 16_000

var budget = layout.Budget{Total: 12_000, Lines: 40}

// message is what Gotify takes as JSON.
type message struct {
	Title    string `json:"title"`
	Message  string `json:"message"`
	Priority int    `json:"priority"`
	Extras   extras `json:"extras"`
}

// extras says how a message is shown, where a tap on it leads, and which notification it is.
type extras struct {
	Display struct {
		ContentType string `json:"contentType"`
	} `json:"client::display"`
	Notification struct {
		Click struct {
			URL string `json:"url"`
		} `json:"click"`
	} `json:"client::notification,omitzero"`
	Ours struct {
		ID string `json:"id"`
	} `json:"vokter::notification"`
}

// Deliver sends n. It follows no redirects, and reads no more than 128 KB of the answer.
func (s *Gotify) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := layout.Of(n, budget)
	text, ok := s.template.Render(ctx, n)
	if !ok {
		text = chat.Below(m)
	}
	var x extras
	x.Display.ContentType, x.Notification.Click.URL, x.Ours.ID = "text/plain", m.URL, n.ID
	body := chat.JSON(message{Title: chat.Title(m), Message: layout.Cut(text, maxText, layout.Runes), Priority: s.priority, Extras: x})
	a, err := s.endpoint.Do(ctx, http.MethodPost, s.url, s.header, body)
	if err != nil {
		return err
	}
	return s.verdict(a)
}

// verdict reads what Gotify answered: the ID of the message, or what is wrong.
func (s *Gotify) verdict(a *post.Answer) error {
	type answer struct {
		ID          uint64 `json:"id"`
		Code        int    `json:"errorCode"`
		Description string `json:"errorDescription"`
	}
	said := chat.Read[answer](a.Body)
	err := a.Err()
	switch {
	case err == nil && said.ID != 0:
		return nil
	case err == nil:
		err = a.Without("the ID of a message")
	case said.Code == http.StatusUnauthorized && a.Status == said.Code:
		err = fmt.Errorf("%w: check that it is that of an application", err)
	case said.Code == http.StatusForbidden && a.Status == said.Code:
		err = fmt.Errorf("%w: check that it is that of an application", a.Denied(post.TokenRefused))
	}
	return s.endpoint.Because(err, said.Description)
}
