package ntfy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Ntfy publishes notifications to one topic. It is safe for concurrent use.
type Ntfy struct {
	endpoint *outbound.Endpoint
	server   *url.URL
	header   http.Header
	topic    string
	priority int
	tags     []string
	template render.Template
}

var _ pipeline.Sink = (*Ntfy)(nil)

// maxText is how many bytes ntfy takes as a message; a longer one it makes an attachment.
// A whole request may have twice as many, so that they are counted as JSON has them.
const maxText = 4096

// budget leaves room for what Plain puts between the texts, and for the line that counts the
// rest.
var budget = render.Budget{Total: 3900, Lines: 40, LineCost: 6, Length: render.Encoded}

// message is what ntfy takes as JSON.
type message struct {
	Topic    string   `json:"topic"`
	Title    string   `json:"title"`
	Message  string   `json:"message"`
	Click    string   `json:"click,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	Priority int      `json:"priority,omitempty"`
}

// Deliver publishes n. It follows no redirects, and reads no more than 128 KB of the answer.
func (s *Ntfy) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	text, ok := s.template.Render(ctx, n)
	if !ok {
		text = render.Below(m)
	}
	body := outbound.JSON(message{
		Topic: s.topic, Title: render.Title(m), Message: render.Cut(text, maxText, render.Encoded), Click: m.URL, Tags: s.tags, Priority: s.priority,
	})
	a, err := s.endpoint.Do(ctx, http.MethodPost, s.server, s.header, body)
	if err != nil {
		return err
	}
	return s.verdict(a)
}

// The codes of ntfy's errors that say more than their status.
const (
	codeUnauthorized = 40101
	codeForbidden    = 40301
	codeDailyQuota   = 42908
)

// waitQuota is for how long ntfy is left alone once the messages of the day are used up, since it
// does not say for how long.
const waitQuota = time.Hour

// verdict reads what ntfy answered: the ID of the message, or what is wrong.
func (s *Ntfy) verdict(a *outbound.Answer) error {
	type answer struct {
		ID    string `json:"id"`
		Code  int    `json:"code"`
		Error string `json:"error"`
	}
	said := outbound.Read[answer](a.Body)
	err := a.Err()
	switch {
	case err == nil && said.ID != "":
		return nil
	case err == nil:
		return s.endpoint.Because(a.Without("the ID of a message"), said.Error)
	case said.Code == codeUnauthorized:
		err = fmt.Errorf("%w: check it, or the user and password", a.Denied("the token is refused, or the password"))
	case said.Code == codeForbidden:
		err = fmt.Errorf("%w: the token, or the user, may not write to the topic", a.Denied(outbound.AccessRefused))
	case said.Code == codeDailyQuota:
		err = a.Limit(err, waitQuota)
	}
	return s.endpoint.Because(err, said.Error)
}
