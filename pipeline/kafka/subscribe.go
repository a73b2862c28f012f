package kafka

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/mill"
)

// Subscriber returns a Watermill subscriber for a consumer group. Subscribing gives one
// channel of the messages of all lanes that this process owns; several subscriptions of a
// group share them. A message's context is not cancelled when the subscription begins to
// close but when it is handled, or when the grace of the Transport is over. Close closes the
// subscriptions that were made through it, and returns when their channels are closed.
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

// subscription is one channel.
type subscription struct {
	t   *Transport
	who consumer
	out chan *message.Message
	// ctx is the parent of the contexts of messages.
	ctx    context.Context
	cancel context.CancelFunc
	// runs serve its lanes.
	runs sync.WaitGroup
	// abandoned is closed when messages in flight are not waited for any more.
	abandoned chan struct{}
	once      sync.Once
}

// attach adds a subscription of who, which gets its part of the lanes.
func (t *Transport) attach(ctx context.Context, who consumer) (*subscription, error) {
	s := &subscription{t: t, who: who, out: make(chan *message.Message), abandoned: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.subsMu.Lock()
	closed := t.ctx.Err() != nil // asked here: Close has seen the subscriptions that there are
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

// close ends the subscription: nothing new is handed out, what is in flight may finish
// within bounds.
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

// subscription returns who serves a lane for a consumer; nil where nobody does.
func (t *Transport) subscription(who consumer, lane int) *subscription {
	t.subsMu.Lock()
	defer t.subsMu.Unlock()
	subs := t.subs[who]
	if len(subs) == 0 {
		return nil
	}
	return subs[lane%len(subs)]
}

// consumers lists what is subscribed to.
func (t *Transport) consumers() []consumer {
	t.subsMu.Lock()
	defer t.subsMu.Unlock()
	var all []consumer
	for who := range t.subs {
		all = append(all, who)
	}
	return all
}
