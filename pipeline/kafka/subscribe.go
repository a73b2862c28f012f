package kafka

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Subscriber returns a Watermill subscriber for a consumer group. A subscription is one channel
// with the messages of all lanes that this process owns; several subscriptions of a group share
// the lanes. The context of a message is cancelled when the message is handled, or when the
// grace period of a closing subscription is over. Close closes the subscriptions of this
// subscriber and returns when their channels are closed.
func (t *Transport) Subscriber(group string) message.Subscriber { return t.subs.Subscriber(group) }

// openConsumer creates the topic of c if it is missing. It refuses a topic that is not divided into lanes.
func (t *Transport) openConsumer(ctx context.Context, c consumer) error {
	if t.ctx.Err() != nil {
		return ErrClosed
	}
	if topic := t.declaredTopic(c.Topic); topic.IsOutlet() && topic.ReadBy(c.Group) {
		return fmt.Errorf("kafka: topic %s is for other programs; add the group %q to its declaration at the start, as Router.Handle does", c.Topic, c.Group)
	}
	return t.ensureTopic(ctx, t.chain.HeadOf(c).Topic)
}

// reassign spreads the lanes over the subscriptions of the consumer who.
func (t *Transport) reassign(who consumer) {
	if !t.ready.Load() {
		return
	}
	for lane := range t.slots {
		if n := t.lease(lane); n != nil {
			n.startRunner(who)
		}
	}
}

// Poster returns a Poster that delivers messages to the handler of a group and topic without
// writing them to the topic. A bounded number of them waits in each lane until the group
// subscribes. Messages for a lane that went to another process are refused.
func (t *Transport) Poster(group, topic string) flow.Poster {
	return engine.Poster{Topic: topic, Over: t.ctx.Done(), Closed: ErrClosed, Inbox: func(key string) (*engine.Inbox, error) {
		if t.ctx.Err() != nil || !t.ready.Load() {
			return nil, ErrClosed
		}
		t.activity.Add(1)
		return t.inbox(consumer{Group: group, Topic: topic}, client.PartitionOf(key, t.lanes)), nil
	}}
}

// inbox returns the inbox of a consumer in a lane.
func (t *Transport) inbox(who consumer, lane int) *engine.Inbox {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := inboxKey{who, lane}
	if t.inboxes[at] == nil {
		t.inboxes[at] = new(engine.Inbox)
	}
	return t.inboxes[at]
}

type inboxKey struct {
	consumer consumer
	lane     int
}

// clearInboxes drops the messages that were posted to a lane that was given up.
func (t *Transport) clearInboxes(lane int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, b := range t.inboxes {
		if at.lane == lane {
			b.Clear(errMoved)
		}
	}
}

// hasPosted reports whether posted messages are waiting.
func (t *Transport) hasPosted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.inboxes {
		if !b.Empty() {
			return true
		}
	}
	return false
}
