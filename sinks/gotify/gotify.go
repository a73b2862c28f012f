package gotify

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Gotify sends notifications as one application. It is safe for concurrent use.
type Gotify struct {
	endpoint *outbound.Endpoint
	url      *url.URL
	header   http.Header
	priority int
	template render.Template
}

var _ pipeline.Sink = (*Gotify)(nil)

// maxText bounds a message, in runes: databases of Gotify's may hold 64 KB of it.
const maxText = 16_000

var budget = render.Budget{Total: 12_000, Lines: 40}

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
	m := render.MessageOf(n, budget)
	text, ok := s.template.Render(ctx, n)
	if !ok {
		text = render.Below(m)
	}
	var x extras
	x.Display.ContentType, x.Notification.Click.URL, x.Ours.ID = "text/plain", m.URL, n.ID
	body := outbound.JSON(message{Title: render.Title(m), Message: render.Cut(text, maxText, render.Runes), Priority: s.priority, Extras: x})
	a, err := s.endpoint.Do(ctx, http.MethodPost, s.url, s.header, body)
	if err != nil {
		return err
	}
	return s.verdict(a)
}

// verdict reads what Gotify answered: the ID of the message, or what is wrong.
func (s *Gotify) verdict(a *outbound.Answer) error {
	type answer struct {
		ID          uint64 `json:"id"`
		Code        int    `json:"errorCode"`
		Description string `json:"errorDescription"`
	}
	said := outbound.Read[answer](a.Body)
	err := a.Err()
	switch {
	case err == nil && said.ID != 0:
		return nil
	case err == nil:
		err = a.Without("the ID of a message")
	case said.Code == http.StatusUnauthorized && a.Status == said.Code:
		err = fmt.Errorf("%w: check that it is that of an application", err)
	case said.Code == http.StatusForbidden && a.Status == said.Code:
		err = fmt.Errorf("%w: check that it is that of an application", a.Denied(outbound.TokenRefused))
	}
	return s.endpoint.Because(err, said.Description)
}
