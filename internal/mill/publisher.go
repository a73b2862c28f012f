// Package mill is what the transports share of being a Watermill Pub/Sub, and of dealing with
// clocks that are set.
package mill

import (
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
)

// Publish publishes messages of one transaction, or of none: that of the context of the
// first one, which is that of all.
type Publish func(topic string, msgs []*message.Message) error

// NewPublisher returns a Watermill publisher that hands messages to publish, those of one
// call and transaction together. Once it is closed, which ends nothing else, it returns
// closed.
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
		// Messages of one transaction stand together in all but odd cases.
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
