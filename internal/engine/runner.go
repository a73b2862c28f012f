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
	// Late reports whether the wakes of group must still wait for messages of the log.
	Late(group string) bool
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
// log, those that were posted, and wakes. What a handler emits to the chain it delivers to the subscription of that
// link before it commits.
type Runner[O any] struct {
	Group, Topic string
	Lane         Lane[O]
	Reader       Reader
	Outputs      Outputs[O]
	Wakes        *Wakes
	Inbox        *Inbox
	// Links are those of the chain behind the consumer, if it is the head of one.
	Links []*Link
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

	subs           []*Subscription // of the consumer, and of the links in their order
	previousDone   <-chan struct{} // closed when the previous runner has ended
	done, stopping chan struct{}
	ctx            context.Context
	busy           atomic.Bool
	turn           int
	rejected       *Tx[O] // the last message that was rejected and is delivered again, nil if there is none
	rejections     int    // how often
}

// Busy reports whether a message is being handled.
func (r *Runner[O]) Busy() bool { return r.busy.Load() }

func (r *Runner[O]) run() {
	defer func() {
		for _, sub := range r.subs {
			sub.runners.Done()
		}
	}()
	defer close(r.done)
	ctx, cancel := context.WithCancel(r.subs[0].ctx)
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

// nextWork returns the next message to handle. If there is none, sleep is how long to wait for the next wake, 0 if
// there is no wake. The log, posted messages and wakes take turns, and so do the wakes of the consumer and of its
// links, so that none starves the others. A wake that is due waits for the posted messages of its key: one of them may
// be the result that the wake would take for lost.
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
			if w, ok, sleep = r.nextWake(now); ok {
				return w, ok, 0, nil
			}
		}
	}
	return Work{}, false, sleep, nil
}

// nextWake returns the next wake that is due. If there is none, sleep is as for nextWork.
func (r *Runner[O]) nextWake(now time.Time) (w Work, ok bool, sleep time.Duration) {
	for i := range 1 + len(r.Links) {
		link, wakes, group, topic := (*Link)(nil), r.Wakes, r.Group, r.Topic
		if at := (r.turn/3 + i) % (1 + len(r.Links)); at > 0 {
			link = r.Links[at-1]
			wakes, group, topic = link.Wakes, link.Group, link.Topic
		}
		wake, due, until := wakes.Next(now)
		wait := min(until.Sub(now), maxSleep)
		if r.Lane.Late(group) {
			due, wait = false, maxSleep
		}
		switch {
		case !due && (wake.At.IsZero() || sleep > 0 && sleep <= wait):
		case !due:
			sleep = wait
		case link == nil && r.Inbox.hasKey(wake.Key):
			return Work{Kind: FromPost, Message: r.Inbox.peek()}, true, 0
		default:
			return Work{Kind: FromWake, Wake: wake, Link: link, Message: flow.WakeMessage(group, topic, wake.Key, wake.At)}, true, 0
		}
	}
	return w, false, sleep
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
	defer r.endRejections()
	for pause := firstPause; ; {
		x := r.begin(w)
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

// begin returns a transaction for an attempt to handle w.
func (r *Runner[O]) begin(w Work) *Tx[O] {
	if w.Link != nil {
		return NewTx(r.Reader, r.Outputs, w.Link.Group, w.Link.Topic, w, r.Links)
	}
	return NewTx(r.Reader, r.Outputs, r.Group, r.Topic, w, r.Links)
}

// deliverOnce delivers the message of x once, and what follows from it within the chain, and commits.
func (r *Runner[O]) deliverOnce(x *Tx[O]) (done, over bool) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	result, over := r.handle(ctx, x, r.stopping)
	if result == nil {
		return false, over
	}
	defer result.Close()
	return r.Lane.Commit(ctx, result, r.stopping)
}

// handle delivers the message of x, waits for its acknowledgement and hands on what it emitted to the chain. It returns
// the transaction with the result: x, or one in which Unhandled got the message. It is nil if the message must come
// again; over says that the runner has to stop before that. Until its handler has the message, handle ends with
// stopping.
func (r *Runner[O]) handle(ctx context.Context, x *Tx[O], stopping <-chan struct{}) (result *Tx[O], over bool) {
	sub := r.subs[0]
	for i, link := range r.Links {
		if link == x.Work.Link {
			sub = r.subs[i+1]
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(sub.ctx, cancel)()
	msg := r.message(ctx, x)
	select {
	case sub.Out <- msg:
	case <-stopping:
		return nil, true
	case <-sub.abandoned:
		return nil, true
	case <-r.Abandoned:
		return nil, true
	}
	select {
	case <-msg.Acked():
	case <-msg.Nacked():
		if r.Rejected != nil && ctx.Err() == nil && !x.failed() {
			r.reject(x)
		}
		return nil, false
	case <-sub.abandoned:
		return nil, true
	case <-r.Abandoned:
		return nil, true
	}
	if r.Unhandled != nil {
		if x, over = r.handled(ctx, x, sub); x == nil {
			return nil, over
		}
	}
	if r.rejected != nil && r.rejected.Work.id() == x.Work.id() {
		r.endRejections()
	}
	return r.handOn(ctx, x)
}

// reject reports that the message of x was rejected.
func (r *Runner[O]) reject(x *Tx[O]) {
	if r.rejected != nil && r.rejected.Work.id() != x.Work.id() {
		r.endRejections()
	}
	r.rejected = x
	r.rejections++
	r.Rejected(x.unhandled(), x.Work.id(), r.rejections)
}

// endRejections says that the message that was rejected last is not delivered again.
func (r *Runner[O]) endRejections() {
	if x := r.rejected; x != nil {
		r.rejected, r.rejections = nil, 0
		r.Rejected(x.unhandled(), x.Work.id(), 0)
	}
}

// unhandled describes the message of x, which its group did not handle.
func (x *Tx[O]) unhandled() flow.Unhandled {
	return flow.Unhandled{Group: x.Group, Topic: x.Topic, Published: x.Work.Kind == FromLog || x.Work.Kind == FromChain}
}

// handled returns x, whose message was acknowledged, if its handler ran. Otherwise Unhandled gets the message in
// another transaction. A failure that was acknowledged, and an acknowledgement at the end, do not count: the message
// comes again.
func (r *Runner[O]) handled(ctx context.Context, x *Tx[O], sub *Subscription) (result *Tx[O], over bool) {
	for {
		result, wait := x.settle()
		switch {
		case result == beingHandled:
			select {
			case <-wait:
				continue
			case <-sub.abandoned:
			case <-r.Abandoned:
			}
			return nil, true
		case result == handled:
			return x, false
		case ctx.Err() != nil:
			return nil, true
		case result == handlingFailed:
			return nil, false
		}
		own := x.Again()
		if err := r.Unhandled(own, x.unhandled()); err != nil {
			own.Close()
			return nil, false
		}
		return own, false
	}
}

// handOn hands on what x emitted to the chain, each message again and again until it is handled. It returns x; nil,
// true if the runner must stop before that.
func (r *Runner[O]) handOn(ctx context.Context, x *Tx[O]) (result *Tx[O], over bool) {
	done := x.HandOn(func(inner *Tx[O]) *Tx[O] {
		for pause := firstPause; ; inner = inner.Again() {
			result, over := r.handle(ctx, inner, nil)
			if result != nil {
				return result
			}
			inner.Close()
			if over || !r.backOff(&pause) {
				return nil
			}
		}
	})
	if !done {
		return nil, true
	}
	return x, false
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
