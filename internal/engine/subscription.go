package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Subscription is one channel of messages, which runners fill.
type Subscription struct {
	Out chan *message.Message
	// ctx is the parent of the contexts of messages.
	ctx     context.Context
	cancel  context.CancelFunc
	runners sync.WaitGroup
	// abandoned is closed when the subscription stops waiting for messages in flight.
	abandoned chan struct{}
	// closeOnce closes the subscription; see Subscriptions.end.
	closeOnce  func()
	subscriber *subscriber
}

// Seat is the place of the runner that serves a lane for a group. The zero Seat is free. Its users
// hold a lock.
type Seat[O any] struct {
	// Runner is the one that serves the lane; nil if there is none.
	Runner   *Runner[O]
	lastDone <-chan struct{} // closed when the last runner has ended
}

// Give makes subs serve the lane from now on, by the runner that start returns: that of its consumer, and those of the
// links of its chain in their order. Without any the lane has no runner. The runner of other subscriptions is stopped,
// and its successor begins when it has ended.
func (s *Seat[O]) Give(subs []*Subscription, start func() *Runner[O]) {
	old := s.Runner
	if old == nil && len(subs) == 0 || old != nil && slices.Equal(old.subs, subs) {
		return
	}
	if old != nil {
		close(old.stopping)
		s.Runner = nil
	}
	if len(subs) == 0 {
		return
	}
	r := start()
	r.subs, r.previousDone, r.done, r.stopping = subs, s.lastDone, make(chan struct{}), make(chan struct{})
	s.Runner, s.lastDone = r, r.done
	for _, sub := range subs {
		sub.runners.Add(1)
	}
	go r.run()
}

// Wait waits until the last runner has ended.
func (s *Seat[O]) Wait() {
	if s.lastDone != nil {
		<-s.lastDone
	}
}
