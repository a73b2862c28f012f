// Package engine is the engine that the transports share. A lane has one handler for each group and
// topic, which gets messages one at a time. What the handler does is collected in a transaction, and
// the transport commits it together with the position of the message.
package engine

import (
	"context"
	"sync"
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
	publish Publish
	closed  error
	over    atomic.Bool
}

func (p *publisher) Publish(topic string, msgs ...*message.Message) error {
	if p.over.Load() {
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
	p.over.Store(true)
	return nil
}

// Subscribe opens a subscription to topic, which is closed when ctx is done.
type Subscribe func(ctx context.Context, topic string) (*Subscription, error)

// NewSubscriber returns a Watermill subscriber that opens its subscriptions with subscribe. Close
// closes all of them. After that Subscribe fails with closed.
func NewSubscriber(subscribe Subscribe, closed error) message.Subscriber {
	return &subscriber{subscribe: subscribe, closed: closed}
}

type subscriber struct {
	subscribe Subscribe
	closed    error

	mu   sync.Mutex
	over bool
	subs []*Subscription
}

func (s *subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil, s.closed
	}
	sub, err := s.subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	s.subs = append(WithoutEnded(s.subs), sub)
	return sub.Out, nil
}

func (s *subscriber) Close() error {
	s.mu.Lock()
	s.over = true
	subs := s.subs
	s.mu.Unlock()
	CloseAll(subs)
	return nil
}
