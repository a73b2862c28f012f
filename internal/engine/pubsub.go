// Package engine is the engine that the transports share. A lane has one handler for each group and
// topic, which gets messages one at a time. What the handler does is collected in a transaction, and
// the transport commits it together with the position of the message.
package engine

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
)

// Publish publishes messages whose contexts have the same transaction, or none.
type Publish func(topic string, msgs []*message.Message) error

// NewPublisher returns a Watermill publisher over publish. After Close, which closes nothing
// else, it fails with closed.
func NewPublisher(publish Publish, closed error) message.Publisher {
	return &publisher{publish: publish, closed: closed}
}

type publisher struct {
	publish  Publish
	closed   error
	isClosed atomic.Bool
}

func (p *publisher) Publish(topic string, msgs ...*message.Message) error {
	if p.isClosed.Load() {
		return p.closed
	}
	for len(msgs) > 0 {
		// Messages of one transaction are nearly always adjacent.
		tx, _ := flow.TxFrom(msgs[0].Context())
		n := 1
		for n < len(msgs) {
			if next, _ := flow.TxFrom(msgs[n].Context()); next != tx {
				break
			}
			n++
		}
		if err := p.publish(topic, msgs[:n]); err != nil {
			return err
		}
		msgs = msgs[n:]
	}
	return nil
}

func (p *publisher) Close() error {
	p.isClosed.Store(true)
	return nil
}

// Poster is a flow.Poster to the inboxes of a consumer.
type Poster struct {
	Topic string
	// Inbox returns the inbox of the lane of key, or why nothing can be posted.
	Inbox func(key string) (*Inbox, error)
	// Over is closed when the transport is, and Closed is the error from then on.
	Over   <-chan struct{}
	Closed error
}

var _ flow.Poster = Poster{}

// Post puts m into the inbox of its lane. It blocks while there is no room, until ctx is done or the
// transport is closed.
func (p Poster) Post(ctx context.Context, m flow.Message) error {
	in, err := p.Inbox(cmp.Or(m.Key, m.ID))
	if err != nil {
		return err
	}
	m.Topic, m.Time = p.Topic, m.Time.Round(0).UTC()
	return in.Post(ctx, &m, p.Over, p.Closed)
}
