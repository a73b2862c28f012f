package engine

import (
	"context"
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

// Give makes sub serve the lane from now on, by the runner that start returns; a nil sub leaves the
// lane without one. The runner of another subscription is stopped, and its successor begins when it
// has ended.
func (s *Seat[O]) Give(sub *Subscription, start func() *Runner[O]) {
	old := s.Runner
	if old == nil && sub == nil || old != nil && old.Sub == sub {
		return
	}
	if old != nil {
		close(old.stopping)
		s.Runner = nil
	}
	if sub == nil {
		return
	}
	r := start()
	r.Sub, r.previousDone, r.done, r.stopping = sub, s.lastDone, make(chan struct{}), make(chan struct{})
	s.Runner, s.lastDone = r, r.done
	sub.runners.Add(1)
	go r.run()
}

// Wait waits until the last runner has ended.
func (s *Seat[O]) Wait() {
	if s.lastDone != nil {
		<-s.lastDone
	}
}
