package local

import (
	"context"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/mill"
)

// abandonAfter is how long handlers may go on after their contexts were cancelled.
const abandonAfter = time.Second

// Subscriber returns a Watermill subscriber for a consumer group. Subscribing gives one
// channel of the messages of all lanes; several subscriptions of a group share the
// lanes. A message's context is not cancelled when the subscription begins to close but
// when it is handled, or when Config.Grace is over. Close closes the subscriptions that
// were made through it, and returns when their channels are closed.
func (t *Transport) Subscriber(group string) message.Subscriber {
	return mill.NewSubscriber(func(ctx context.Context, topic string) (<-chan *message.Message, func(), error) {
		s, err := t.subscribe(ctx, group, topic)
		if err != nil {
			return nil, nil, err
		}
		return s.out, s.close, nil
	}, ErrClosed)
}

// subscription is one channel.
type subscription struct {
	c   *consumer
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

func (t *Transport) subscribe(ctx context.Context, group, topic string) (*subscription, error) {
	t.subsMu.Lock()
	defer t.subsMu.Unlock()
	if t.closed() {
		return nil, ErrClosed
	}
	c, err := t.consumer(group, t.topic(topic))
	if err != nil {
		return nil, err
	}
	s := &subscription{c: c, out: make(chan *message.Message), abandoned: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.subs[s] = struct{}{}
	c.attach(s)
	unwatch := context.AfterFunc(ctx, s.close)
	context.AfterFunc(s.ctx, func() { unwatch() })
	return s, nil
}

// close ends the subscription: nothing new is handed out, what is in flight may finish
// within bounds.
func (s *subscription) close() {
	s.once.Do(func() {
		t := s.c.t
		s.c.detach(s)
		cancel := time.AfterFunc(t.cfg.Grace, s.cancel)
		abandon := time.AfterFunc(t.cfg.Grace+abandonAfter, func() { close(s.abandoned) })
		s.runs.Wait()
		cancel.Stop()
		abandon.Stop()
		s.cancel()
		close(s.out)
		t.subsMu.Lock()
		delete(t.subs, s)
		t.subsMu.Unlock()
	})
}
