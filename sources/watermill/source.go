// Package watermill is the source that takes pages from any Watermill subscriber: AMQP, NATS,
// SQL, Redis and whatever else has one. They come at least once.
package watermill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Config says where pages come from.
type Config struct {
	// Subscriber gives the messages. It stays open when the source ends. Required.
	Subscriber message.Subscriber
	// Topic is the topic to subscribe to. Required.
	Topic string
	// Page makes a page of a message. What is missing in it is told by a dead letter. Nil is
	// Page, the function of this package.
	Page func(*message.Message) pipeline.Pushed
}

// Source takes pages from a topic of a Watermill subscriber, one message at a time. A message
// is acknowledged once its page is handed over; otherwise it is rejected and the subscription
// ends: with the next one it comes again, unless the subscriber keeps nothing.
type Source struct{ c Config }

var _ pipeline.Source = (*Source)(nil)

// New returns a Source.
func New(c Config) *Source { return &Source{c} }

// Validate returns what is missing, or nil.
func (s *Source) Validate() error {
	if s.c.Subscriber == nil || s.c.Topic == "" {
		return errors.New("a subscriber and a topic are needed")
	}
	return nil
}

// Run hands over what is published until ctx is done. It returns an error where the
// subscription fails or ends, and where a page is not taken: whoever runs it again pauses.
func (s *Source) Run(ctx context.Context, emit pipeline.Emit) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	page := s.c.Page
	if page == nil {
		page = Page
	}
	messages, err := s.c.Subscriber.Subscribe(ctx, s.c.Topic)
	if err != nil {
		return fmt.Errorf("subscribing to %q: %w", s.c.Topic, err)
	}
	for m := range messages {
		if ctx.Err() != nil {
			m.Nack()
			continue
		}
		// What is unusable is among the dead letters, and would be so the next time.
		if err := emit(ctx, page(m)); err != nil && !errors.Is(err, pipeline.ErrUnusable) {
			m.Nack()
			if ctx.Err() != nil {
				continue
			}
			return fmt.Errorf("message %s was not taken: %w", m.UUID, err)
		}
		m.Ack()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("the subscription to %q ended", s.c.Topic)
}

// Page returns the page that m carries. Its metadata are named as in the topic ingest, in any
// case: ce_subject (or url) is the URL, content-type what the payload is; ce_id, ce_time (in
// RFC 3339), content-language and traceparent are optional. Without ce_id the ID is m's UUID.
func Page(m *message.Message) pipeline.Pushed {
	h := make(map[string]string, len(m.Metadata))
	for name, value := range m.Metadata {
		lower := strings.ToLower(name)
		if _, exact := m.Metadata[lower]; name == lower || !exact {
			h[lower] = value
		}
	}
	p := pipeline.Pushed{
		URL: h["ce_subject"], ContentType: h["content-type"], ContentLanguage: h["content-language"], Body: m.Payload, ID: h["ce_id"],
	}
	if p.URL == "" {
		p.URL = h["url"]
	}
	if p.ID == "" {
		p.ID = m.UUID
	}
	if at, err := time.Parse(time.RFC3339Nano, h["ce_time"]); err == nil {
		p.Time = at
	}
	if trace := h[flow.HeaderTrace]; trace != "" {
		p.Header = map[string]string{flow.HeaderTrace: trace}
	}
	return p
}
