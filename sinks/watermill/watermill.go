// Package watermill is the sink that publishes notifications with any Watermill publisher:
// AMQP, NATS, SQL, Redis and whatever else has one. It is for programs that embed a Router;
// a configuration file has no way to name a publisher.
//
// The payload of a message is the documented JSON, or the change record that it carries, its UUID is the ID of the
// notification, which is the same on every attempt, and its metadata are those of a CloudEvent
// (https://cloudevents.io): ce_id, ce_type, ce_dataschema, ce_source, ce_subject, ce_time, ce_specversion and content-type.
package watermill

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// Config says where notifications go. Both fields are required.
type Config struct {
	// Publisher takes the messages. It stays open when the Router ends.
	Publisher message.Publisher
	// Topic is what they are published to.
	Topic string
}

// Sink publishes notifications to one topic. It is safe for concurrent use if its publisher
// is.
type Sink struct {
	publisher message.Publisher
	topic     string
}

var _ pipeline.ChangeSink = (*Sink)(nil)

// New returns the sink of c, or an error that says what is missing.
func New(c Config) (*Sink, error) {
	if c.Publisher == nil || c.Topic == "" {
		return nil, errors.New("a publisher and a topic are needed")
	}
	return &Sink{c.Publisher, c.Topic}, nil
}

// TakesChanges returns nil: a change record is the payload of its message.
func (s *Sink) TakesChanges() error { return nil }

// Batch says that an attempt delivers waiting notifications, one after the other.
func (s *Sink) Batch() (notifications, atOnce int) { return 100, 1 }

// Deliver publishes n, and returns nil once the publisher has. When ctx is done it returns,
// also where the publisher does not; the context of the message is done as well then. Any
// failure to publish is tried again, unless its error has another class.
func (s *Sink) Deliver(ctx context.Context, n pipeline.Notification) error {
	m, err := Marshaler{}.Marshal(n)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the message was not published: %w", err)
	}
	m.SetContext(ctx)
	done := make(chan error, 1)
	go func() { done <- s.publisher.Publish(s.topic, m) }()
	select {
	case err := <-done:
		if err != nil {
			return failure.Ambiguous(fmt.Errorf("publishing to %s: %w", s.topic, err))
		}
		return nil
	case <-ctx.Done():
		return failure.Ambiguous(fmt.Errorf("publishing to %s: %w", s.topic, ctx.Err()))
	}
}
