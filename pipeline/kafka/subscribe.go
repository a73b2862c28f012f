package kafka

import (
	"cmp"
	"context"
	"slices"

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
func (t *Transport) Subscriber(group string) message.Subscriber {
	return engine.NewSubscriber(func(ctx context.Context, topic string) (*engine.Subscription, error) {
		if t.ctx.Err() != nil {
			return nil, ErrClosed
		}
		if err := t.ensure(ctx, topic); err != nil {
			return nil, err
		}
		return t.attach(ctx, consumer{group, topic})
	}, ErrClosed)
}

// attach adds a subscription of who and assigns its part of the lanes to it.
func (t *Transport) attach(ctx context.Context, who consumer) (*engine.Subscription, error) {
	s := engine.NewSubscription(ctx, func(s *engine.Subscription) { t.detach(who, s) }, t.grace, finishFor)
	t.subsMu.Lock()
	if t.ctx.Err() != nil { // under the lock: Close closes only the subscriptions that it finds
		t.subsMu.Unlock()
		return nil, ErrClosed
	}
	t.subs[who] = append(t.subs[who], s)
	t.subsMu.Unlock()
	t.reassign(who)
	s.CloseWith(ctx)
	return s, nil
}

// detach takes the lanes of s away.
func (t *Transport) detach(who consumer, s *engine.Subscription) {
	t.subsMu.Lock()
	t.subs[who] = slices.DeleteFunc(t.subs[who], func(o *engine.Subscription) bool { return o == s })
	if len(t.subs[who]) == 0 {
		delete(t.subs, who)
	}
	t.subsMu.Unlock()
	t.reassign(who)
}

// reassign spreads the lanes over the subscriptions of who.
func (t *Transport) reassign(who consumer) {
	if !t.ready.Load() {
		return
	}
	for lane := range t.owned {
		if n := t.lease(lane); n != nil {
			n.run(who)
		}
	}
}

// subscription returns the subscription that gets a lane of a consumer, or nil.
func (t *Transport) subscription(who consumer, lane int) *engine.Subscription {
	t.subsMu.Lock()
	defer t.subsMu.Unlock()
	subs := t.subs[who]
	if len(subs) == 0 {
		return nil
	}
	return subs[lane%len(subs)]
}

// consumers returns the consumers that have subscriptions.
func (t *Transport) consumers() []consumer {
	t.subsMu.Lock()
	defer t.subsMu.Unlock()
	var all []consumer
	for who := range t.subs {
		all = append(all, who)
	}
	return all
}

// Poster returns a Poster that delivers messages to the handler of a group and topic without
// writing them to the topic. A bounded number of them waits in each lane until the group
// subscribes. Messages for a lane that went to another process are refused.
func (t *Transport) Poster(group, topic string) flow.Poster {
	return &poster{t, consumer{group, topic}}
}

type poster struct {
	t   *Transport
	who consumer
}

var _ flow.Poster = (*poster)(nil)

func (p *poster) Post(ctx context.Context, m flow.Message) error {
	if p.t.ctx.Err() != nil || !p.t.ready.Load() {
		return ErrClosed
	}
	m.Topic, m.Time = p.who.topic, m.Time.Round(0).UTC()
	b := p.t.inbox(p.who, client.PartitionOf(cmp.Or(m.Key, m.ID), p.t.lanes))
	err := b.Post(ctx, &m, p.t.ctx.Done(), ErrClosed)
	p.t.activity.Add(1)
	return err
}

// inbox returns the inbox of a consumer in a lane.
func (t *Transport) inbox(who consumer, lane int) *engine.Inbox {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.inboxes[who]
	if all == nil {
		all = make([]*engine.Inbox, t.lanes)
		for i := range all {
			all[i] = new(engine.Inbox)
		}
		t.inboxes[who] = all
	}
	return all[lane]
}

// clearInboxes drops the messages that were posted to a lane that was given up.
func (t *Transport) clearInboxes(lane int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.inboxes {
		all[lane].Clear(errMoved)
	}
}

// posted reports whether posted messages are waiting.
func (t *Transport) posted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.inboxes {
		for _, b := range all {
			if !b.Empty() {
				return true
			}
		}
	}
	return false
}
