package slack

import (
	"context"
	"fmt"
	"net/url"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// defaultAPI is where the methods of Slack's API are.
const defaultAPI = "https://slack.com/api/"

// Slack is a channel of Slack to which notifications are posted.
type Slack struct {
	post     outbound.Sender
	template render.Template
	// send posts one message, in the way of a bot or of a webhook.
	send func(context.Context, message) error

	// api, token, channel and thread are those of a bot.
	api     string
	token   string
	channel string
	thread  bool
	// hook is the URL of a webhook.
	hook *url.URL
}

// Rate is what Slack allows a channel: one message a second, and a few at once.
func (s *Slack) Rate() (perSecond float64, burst int) { return 1, 3 }

// Deliver posts n. It follows no redirects, and reads no more than 128 KB of an answer.
// Where Slack refuses the message because of how it is made, it is posted as plain text.
func (s *Slack) Deliver(ctx context.Context, n pipeline.Notification) error {
	l := render.MessageOf(n, budget)
	m := message{id: n.ID, text: fallback(l), blocks: blocksOf(l)}
	if text, ok := s.templated(ctx, n); ok {
		m = message{id: n.ID, text: text, markup: true}
	}
	err := s.send(ctx, m)
	if class, _ := pipeline.ClassOf(err); class != pipeline.ClassRefused {
		return err
	}
	if again := s.send(ctx, message{text: fallback(l)}); again != nil {
		return fmt.Errorf("%s; and as plain text: %w", err.Error(), again) // the class is that of again
	}
	pipeline.AttemptFrom(ctx).Degraded("posted without its layout, since Slack " + err.Error())
	return nil
}

// templated returns what the template makes of n, in mrkdwn. ok is false where n is to be
// laid out as usual.
func (s *Slack) templated(ctx context.Context, n pipeline.Notification) (text string, ok bool) {
	text, ok = s.template.RenderFor(ctx, n, render.Mrkdwn)
	if ok && render.UTF16(text) > maxTemplated {
		pipeline.AttemptFrom(ctx).Degraded(fmt.Sprintf("the template says more than %d characters, at which Slack would split it", maxTemplated))
		return "", false
	}
	return text, ok
}
