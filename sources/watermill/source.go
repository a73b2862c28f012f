// Package watermill is a source that reads pages from any Watermill subscriber, for example for
// AMQP, NATS, SQL or Redis. Each page is delivered at least once.
package watermill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Config configures a Source.
type Config struct {
	// Subscriber delivers the messages. The source does not close it. Required.
	Subscriber message.Subscriber
	// Topic is the topic to subscribe to. Required.
	Topic string
	// Page converts a message to a page. A page that lacks something becomes a dead letter that
	// says what. Nil means Page, the function of this package.
	Page func(*message.Message) pipeline.Pushed
}

// Source reads pages from a topic of a Watermill subscriber, one message at a time. It
// acknowledges a message once its page is published. Otherwise it rejects the message and ends
// the subscription. Most subscribers deliver the message again to the next subscription.
type Source struct{ c Config }

var _ pipeline.Source = (*Source)(nil)

// New returns a Source.
func New(c Config) *Source { return &Source{c} }

// Validate returns an error about missing fields, or nil.
func (s *Source) Validate() error {
	if s.c.Subscriber == nil || s.c.Topic == "" {
		return errors.New("a subscriber and a topic are needed")
	}
	return nil
}

// Run emits the messages of the topic until ctx is done. It returns an error if the
// subscription fails or ends, or if emit fails. The Router runs it again after a pause.
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
		// A page that is unusable became a dead letter. To read it again would not help.
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

// Page returns the page in m, whose payload is the body. Metadata have the names of the topic
// ingest, in any case: ce_subject (or url) is the URL, content-type the type of the payload.
// Optional are ce_id, ce_time (RFC 3339), content-language and traceparent. Without ce_id the
// ID is the UUID of m.
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
	p.URL = cmp.Or(p.URL, h["url"])
	p.ID = cmp.Or(p.ID, m.UUID)
	if at, err := time.Parse(time.RFC3339Nano, h["ce_time"]); err == nil {
		p.Time = at
	}
	if trace := h[flow.HeaderTrace]; trace != "" {
		p.Header = map[string]string{flow.HeaderTrace: trace}
	}
	return p
}
