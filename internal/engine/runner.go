package engine

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
)

const (
	// firstPause is the pause after the first rejection of a message. Each further pause is twice
	// as long.
	firstPause = 5 * time.Millisecond
	// maxSleep is how long a runner sleeps at most while a wake is set, so that it notices a clock
	// that was set, and a machine that was suspended.
	maxSleep = time.Second
)

// Lane is the log of a lane as one group reads it, and commits what the group does. Its methods are called
// by one goroutine.
type Lane[O any] interface {
	// Begin prepares for reading; end undoes that. Signal is where a token announces that there may
	// be a message.
	Begin(signal chan struct{}) (end func())
	// Peek returns the next message, and the same one again until it is committed. Ok is false if
	// there is none yet.
	Peek() (w Work, ok bool, err error)
	// Late reports whether wakes must still wait for messages of the log.
	Late() bool
	// Admit returns nil if w may be handled now, and otherwise a channel that is closed when to ask
	// again.
	Admit(w Work) (wait <-chan struct{})
	// Commit makes the effects of x stand and moves on behind its message. Done says that it did;
	// then the message does not come again. Over says that the runner has to stop, for example
	// because stopping was closed while Commit waited. Otherwise the message is handled again.
	Commit(ctx context.Context, x *Tx[O], stopping <-chan struct{}) (done, over bool)
	// Broken is called when the log cannot be read.
	Broken(err error)
}

// Runner delivers the messages of a group in a lane to a subscription, one at a time: those of the
// log, those that were posted, and wakes.
type Runner[O any] struct {
	Group, Topic string
	Sub          *Subscription
	Lane         Lane[O]
	Reader       Reader
	Outputs      Outputs[O]
	Wakes        *Wakes
	Inbox        *Inbox
	// Now returns the time, and notices that the clock was set back.
	Now func() time.Time
	// Bare says that Watermill's messages need no metadata.
	Bare bool
	// Unhandled is that of flow.Wiring.
	Unhandled func(flow.Tx, flow.Unhandled) error
	// Rejected is that of flow.Wiring.
	Rejected func(u flow.Unhandled, id string, times int)
	// MaxPause is the longest pause before a message is delivered again.
	MaxPause time.Duration
	// Closing is closed when the transport begins to close. Cutting is done when handlers must
	// return, and Abandoned is closed when nobody waits for them any longer; both may be nil.
	Closing   <-chan struct{}
	Cutting   context.Context
	Abandoned <-chan struct{}
	// Signal has room for one token, which says that there may be something to do.
	Signal chan struct{}

	previousDone   <-chan struct{} // closed when the previous runner has ended
	done, stopping chan struct{}
	ctx            context.Context
	busy           atomic.Bool
	turn           int
	rejections     int // of the message that is delivered
}

// Busy reports whether a message is being handled.
func (r *Runner[O]) Busy() bool { return r.busy.Load() }

func (r *Runner[O]) run() {
	defer r.Sub.runners.Done()
	defer close(r.done)
	ctx, cancel := context.WithCancel(r.Sub.ctx)
	defer cancel()
	r.ctx = ctx
	if r.Cutting != nil {
		defer context.AfterFunc(r.Cutting, cancel)()
	}
	if r.previousDone != nil {
		<-r.previousDone
	}
	defer r.Lane.Begin(r.Signal)()
	r.Inbox.startServing(r.Signal)
	timer := time.NewTimer(maxSleep)
	defer timer.Stop()
	for pause := firstPause; ; {
		select {
		case <-r.stopping:
			return
		case <-r.Closing:
			return
		default:
		}
		w, ok, sleep, err := r.nextWork()
		switch {
		case err != nil:
			r.Lane.Broken(err)
			if !r.backOff(&pause) {
				return
			}
			continue
		case ok:
			pause = firstPause
			r.busy.Store(true)
			done := r.deliver(w)
			r.busy.Store(false)
			if !done {
				return
			}
			continue
		}
		var alarm <-chan time.Time
		if sleep > 0 {
			timer.Reset(sleep)
			alarm = timer.C
		}
		select {
		case <-r.Signal:
		case <-alarm:
		case <-r.stopping:
			return
		}
	}
}

// nextWork returns the next message to handle. If there is none, sleep is how long to wait for the next
// wake, 0 if there is no wake. The log, posted messages and wakes take turns, so that none starves
// the others. A wake that is due waits for the posted messages of its key: one of them may be the
// result that the wake would take for lost.
func (r *Runner[O]) nextWork() (w Work, ok bool, sleep time.Duration, err error) {
	now := r.Now()
	r.turn++
	for i := range 3 {
		switch (r.turn + i) % 3 {
		case 0:
			if w, ok, err = r.Lane.Peek(); ok || err != nil {
				return w, ok, 0, err
			}
		case 1:
			if p := r.Inbox.peek(); p != nil {
				return Work{Kind: FromPost, Message: p}, true, 0, nil
			}
		case 2:
			wake, due, until := r.Wakes.Next(now)
			switch {
			case !due && until.IsZero():
			case r.Lane.Late():
				sleep = maxSleep
			case due && r.Inbox.hasKey(wake.Key):
				return Work{Kind: FromPost, Message: r.Inbox.peek()}, true, 0, nil
			case due:
				return Work{Kind: FromWake, Wake: wake, Message: flow.WakeMessage(r.Group, r.Topic, wake.Key, wake.At)}, true, 0, nil
			default:
				sleep = min(until.Sub(now), maxSleep)
			}
		}
	}
	return Work{}, false, sleep, nil
}

// deliver delivers w, again and again if it is rejected, until it is committed. It returns false if
// the runner must stop before that; w is then delivered again later.
func (r *Runner[O]) deliver(w Work) bool {
	for wait := r.Lane.Admit(w); wait != nil; wait = r.Lane.Admit(w) {
		select {
		case <-wait:
		case <-r.stopping:
			return false
		}
	}
	defer r.endRejections(w)
	for pause := firstPause; ; {
		x := NewTx(r.Reader, r.Outputs, r.Group, r.Topic, w)
		done, over := r.deliverOnce(x)
		x.Close()
		if done && w.Kind == FromPost {
			r.Inbox.pop()
		}
		if done || over {
			return done
		}
		if !r.backOff(&pause) {
			return false
		}
	}
}

// deliverOnce delivers the message of x once, waits for its acknowledgement and commits.
func (r *Runner[O]) deliverOnce(x *Tx[O]) (done, over bool) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	msg := r.message(ctx, x)
	select {
	case r.Sub.Out <- msg:
	case <-r.stopping:
		return false, true
	}
	select {
	case <-msg.Acked():
	case <-msg.Nacked():
		if r.Rejected != nil && ctx.Err() == nil && !x.failed() {
			r.rejections++
			r.Rejected(r.unhandled(x.Work), x.Work.id(), r.rejections)
		}
		return false, false
	case <-r.Sub.abandoned:
		return false, true
	case <-r.Abandoned:
		return false, true
	}
	if r.Unhandled == nil {
		return r.Lane.Commit(ctx, x, r.stopping)
	}
	return r.commitHandled(ctx, x)
}

// commitHandled commits x, whose message was acknowledged, if its handler ran. Otherwise Unhandled gets the message. A
// failure that was acknowledged, and an acknowledgement at the end, do not count: the message comes again.
func (r *Runner[O]) commitHandled(ctx context.Context, x *Tx[O]) (done, over bool) {
	for {
		result, wait := x.settle()
		switch {
		case result == beingHandled:
			select {
			case <-wait:
				continue
			case <-r.Sub.abandoned:
			case <-r.Abandoned:
			}
			return false, true
		case result == handled:
			return r.Lane.Commit(ctx, x, r.stopping)
		case ctx.Err() != nil:
			return false, true
		case result == handlingFailed:
			return false, false
		}
		own := NewTx(r.Reader, r.Outputs, r.Group, r.Topic, x.Work)
		defer own.Close()
		if err := r.Unhandled(own, r.unhandled(x.Work)); err != nil {
			return false, false
		}
		return r.Lane.Commit(ctx, own, r.stopping)
	}
}

// endRejections says that w is not delivered again, if it was rejected.
func (r *Runner[O]) endRejections(w Work) {
	if r.rejections > 0 {
		r.rejections = 0
		r.Rejected(r.unhandled(w), w.id(), 0)
	}
}

func (r *Runner[O]) unhandled(w Work) flow.Unhandled {
	return flow.Unhandled{Group: r.Group, Topic: r.Topic, Published: w.Kind == FromLog}
}

// backOff waits for *pause and doubles it. It returns false if the runner must stop.
func (r *Runner[O]) backOff(pause *time.Duration) bool {
	after := time.After(min(*pause, r.MaxPause))
	*pause = min(*pause*2, r.MaxPause)
	select {
	case <-after:
		return true
	case <-r.stopping:
		return false
	}
}

// message returns the Watermill message of x, which the handler may change. Its context carries the
// transaction.
func (r *Runner[O]) message(ctx context.Context, x *Tx[O]) *message.Message {
	ctx = flow.WithTx(ctx, x)
	w := x.Work
	if p := w.Message; p != nil {
		m := message.NewMessageWithContext(ctx, p.ID, p.Body)
		if !r.Bare {
			m.Metadata, m.Payload = p.Metadata(), p.Encoded()
		}
		return m
	}
	m := message.NewMessageWithContext(ctx, w.ID, w.Body)
	if !r.Bare {
		maps.Copy(m.Metadata, w.Meta)
	}
	return m
}
