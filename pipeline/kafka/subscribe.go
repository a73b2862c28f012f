package kafka

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Subscriber returns a Watermill subscriber for a consumer group. A subscription is one channel
// with the messages of all lanes that this process owns; several subscriptions of a group share
// the lanes. The context of a message is cancelled when the message is handled, or when the
// grace period of a closing subscription is over. Close closes the subscriptions of this
// subscriber and returns when their channels are closed.
func (t *Transport) Subscriber(group string) message.Subscriber {
	return mill.NewSubscriber(func(ctx context.Context, topic string) (<-chan *message.Message, func(), error) {
		if t.ctx.Err() != nil {
			return nil, nil, ErrClosed
		}
		if err := t.ensure(ctx, topic); err != nil {
			return nil, nil, err
		}
		s, err := t.attach(ctx, consumer{group, topic})
		if err != nil {
			return nil, nil, err
		}
		return s.out, s.close, nil
	}, ErrClosed)
}

// subscription is one channel of messages.
type subscription struct {
	t   *Transport
	who consumer
	out chan *message.Message
	// ctx is the parent of the contexts of messages.
	ctx    context.Context
	cancel context.CancelFunc
	// runs counts the runners that serve it.
	runs sync.WaitGroup
	// abandoned is closed when messages in flight are no longer waited for.
	abandoned chan struct{}
	once      sync.Once
}

// attach adds a subscription of who and assigns its part of the lanes to it.
func (t *Transport) attach(ctx context.Context, who consumer) (*subscription, error) {
	s := &subscription{t: t, who: who, out: make(chan *message.Message), abandoned: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.subsMu.Lock()
	closed := t.ctx.Err() != nil // under the lock: Close closes only the subscriptions that it finds
	if !closed {
		t.subs[who] = append(t.subs[who], s)
	}
	t.subsMu.Unlock()
	if closed {
		s.cancel()
		return nil, ErrClosed
	}
	t.reassign(who)
	unwatch := context.AfterFunc(ctx, s.close)
	context.AfterFunc(s.ctx, func() { unwatch() })
	return s, nil
}

// close ends the subscription. No more messages are delivered; those in flight may be finished
// within the grace period.
func (s *subscription) close() {
	s.once.Do(func() {
		t := s.t
		t.subsMu.Lock()
		t.subs[s.who] = slices.DeleteFunc(t.subs[s.who], func(o *subscription) bool { return o == s })
		if len(t.subs[s.who]) == 0 {
			delete(t.subs, s.who)
		}
		t.subsMu.Unlock()
		t.reassign(s.who)
		cancel := time.AfterFunc(t.grace, s.cancel)
		abandon := time.AfterFunc(t.grace+finishFor, func() { close(s.abandoned) })
		s.runs.Wait()
		cancel.Stop()
		abandon.Stop()
		s.cancel()
		close(s.out)
	})
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
func (t *Transport) subscription(who consumer, lane int) *subscription {
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
	key := m.Key
	if key == "" {
		key = m.ID
	}
	b := p.t.inbox(p.who, client.PartitionOf(key, p.t.lanes))
	for {
		wait, err := b.add(&m)
		if wait == nil || err != nil {
			p.t.activity.Add(1)
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("posting into a full inbox: %w", context.Cause(ctx))
		case <-p.t.ctx.Done():
			return ErrClosed
		}
	}
}

// inbox holds the messages that were posted to a consumer in a lane. They are dropped when the
// lane goes to another process, whose owner starts that work again.
type inbox struct {
	mu     sync.Mutex
	queue  []*flow.Message
	signal chan struct{}
	room   chan struct{} // closed when there is room; nil while nobody waits
	// moved is set when this process has lost the lane.
	moved bool
}

// add appends m. If there is no room, wait is closed when there may be.
func (b *inbox) add(m *flow.Message) (wait <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.moved {
		return nil, errMoved
	}
	if len(b.queue) >= mill.InboxSize {
		if b.room == nil {
			b.room = make(chan struct{})
		}
		return b.room, nil
	}
	b.queue = append(b.queue, m)
	if b.signal != nil {
		notify(b.signal)
	}
	return nil, nil
}

// serve makes signal receive a token for new messages.
func (b *inbox) serve(signal chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signal, b.moved = signal, false
	notify(signal)
}

// clear drops all messages because the lane moved.
func (b *inbox) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue, b.signal, b.moved = nil, nil, true
	b.release()
}

// release wakes those who wait for room. b.mu is held.
func (b *inbox) release() {
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

func (b *inbox) peek() *flow.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	return b.queue[0]
}

func (b *inbox) pop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		b.queue[0] = nil
		b.queue = b.queue[1:]
	}
	b.release()
}

func (b *inbox) empty() bool { return b.peek() == nil }

// inbox returns the inbox of a consumer in a lane.
func (t *Transport) inbox(who consumer, lane int) *inbox {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.inboxes[who]
	if all == nil {
		all = make([]*inbox, t.lanes)
		for i := range all {
			all[i] = new(inbox)
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
		all[lane].clear()
	}
}

// posted reports whether posted messages are waiting.
func (t *Transport) posted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.inboxes {
		for _, b := range all {
			if !b.empty() {
				return true
			}
		}
	}
	return false
}
