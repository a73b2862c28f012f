package kafka

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// maxSleep is how long a runner sleeps at most, so that it notices a clock that was set.
const maxSleep = time.Second

// runner delivers the messages of a consumer in a lane to a subscription, one at a time.
type runner struct {
	n      *lease
	who    consumer
	sub    *subscription
	src    atomic.Pointer[source]
	wakes  *mill.Wakes
	inbox  *inbox
	signal chan struct{}
	turn   int

	// stopping is closed when no more messages may be delivered, prev when the previous runner
	// has ended.
	stopping, done chan struct{}
	prev           <-chan struct{}
	stopOnce       sync.Once
	// ctx is the parent of the contexts of messages.
	ctx    context.Context
	cancel context.CancelFunc
	busy   atomic.Bool
}

func newRunner(n *lease, who consumer, sub *subscription) *runner {
	r := &runner{
		n: n, who: who, sub: sub, signal: make(chan struct{}, 1),
		stopping: make(chan struct{}), done: make(chan struct{}),
	}
	r.wakes = n.wakesOf(who)
	r.inbox = n.t.inbox(who, n.lane)
	r.ctx, r.cancel = context.WithCancel(sub.ctx)
	return r
}

func (r *runner) stop() { r.stopOnce.Do(func() { close(r.stopping) }) }

func (r *runner) loop() {
	defer r.sub.runs.Done()
	defer close(r.done)
	defer r.cancel()
	defer context.AfterFunc(r.n.handling, r.cancel)()
	if r.prev != nil {
		<-r.prev
	}
	r.n.mu.RLock()
	from, ok := r.n.positions[r.who]
	r.n.mu.RUnlock()
	if !ok {
		from = sarama.OffsetOldest
	}
	src := newSource(r.n.t, r.who, r.n.lane, from, r.signal)
	r.src.Store(src)
	defer src.close()
	r.inbox.serve(r.signal)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.stopping:
			return
		case <-r.n.t.ctx.Done(): // Close has begun, and is about to stop all runners
			return
		default:
		}
		w, ok, until := r.next()
		if ok {
			r.busy.Store(true)
			over := !r.deliver(w)
			r.busy.Store(false)
			if over {
				return
			}
			continue
		}
		sleep := maxSleep
		if !until.IsZero() {
			sleep = min(max(until.Sub(r.n.t.now()), 0), maxSleep)
		}
		timer.Reset(sleep)
		select {
		case <-r.signal:
		case <-timer.C:
		case <-r.stopping:
			return
		}
	}
}

// next returns the next message to handle. If there is none, until is the time of the next
// wake. The topic, posted messages and wakes take turns, so that none starves the others.
func (r *runner) next() (w work, ok bool, until time.Time) {
	r.n.t.checkClock()
	r.turn++
	for i := range 3 {
		switch (r.turn + i) % 3 {
		case 0:
			if m := r.src.Load().peek(); m != nil {
				return work{kind: fromLog, record: m}, true, until
			}
		case 1:
			if p := r.inbox.peek(); p != nil {
				return work{kind: fromPost, message: p}, true, until
			}
		case 2:
			if r.n.late(r.who) {
				continue
			}
			var wk mill.Wake
			if wk, ok, until = r.wakes.Next(r.n.t.now()); ok {
				return work{kind: fromWake, wake: wk, message: flow.WakeMessage(r.who.group, r.who.topic, wk.Key, wk.At)}, true, until
			}
		}
	}
	return work{}, false, until
}

// deliver delivers w, again and again if it is rejected, until its writes are merged. It returns
// false if the runner must stop before that; w is then delivered again later.
func (r *runner) deliver(w work) bool {
	if !r.settled(w.key()) || !r.await(r.n.crowded()) {
		return false
	}
	for pause := mill.FirstPause; ; pause = min(2*pause, r.n.t.cfg.MaxPause) {
		x := &tx{lease: r.n, who: r.who, w: w}
		done, over := r.try(x)
		x.close()
		if done {
			r.handled(w)
		}
		if done || over {
			return done
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.stopping:
			timer.Stop()
			return false
		}
	}
}

// settled waits until the OnCommit functions of earlier messages of key have run. It returns
// false if the runner must stop before that.
func (r *runner) settled(key string) bool {
	r.n.mu.RLock()
	landed := r.n.unlanded[place{r.who.group, key}]
	r.n.mu.RUnlock()
	return r.await(landed)
}

// await waits until landed, which may be nil, is closed. It returns false if the runner must
// stop before that.
func (r *runner) await(landed <-chan struct{}) bool {
	if landed == nil {
		return true
	}
	select {
	case <-landed:
		return true
	case <-r.stopping:
		return false
	case <-r.n.ctx.Done():
		return false
	}
}

// try delivers the message of x once, waits for its acknowledgement and merges its writes.
func (r *runner) try(x *tx) (done, over bool) {
	if done, over, ours := r.pass(x); ours {
		return done, over
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	msg := r.message(ctx, x)
	select {
	case r.sub.out <- msg:
	case <-r.stopping:
		return false, true
	}
	select {
	case <-msg.Acked():
	case <-msg.Nacked():
		return false, false
	case <-r.sub.abandoned:
		return false, true
	case <-r.n.abandoned:
		return false, true
	}
	if err := x.Fits(); err != nil {
		r.n.t.outage("the writes of a handler are too large to be committed; its message is delivered again and again", err)
		return false, false
	}
	if err := r.n.t.ensureAll(ctx, x.outputs()); err != nil {
		if ctx.Err() != nil {
			return false, true
		}
		r.n.t.outage("creating a topic that a handler publishes to failed; retrying", err)
		return false, false
	}
	if err := r.n.merge(x); err != nil {
		return false, true // the lease is over
	}
	return true, false
}

// pass processes records that no handler gets: markers, and records in a lane that is not the
// one of their key.
func (r *runner) pass(x *tx) (done, over, ours bool) {
	if x.w.kind != fromLog {
		return false, false, false
	}
	m := x.w.record
	if markerOf(m) != "" {
		done = r.n.merge(x) == nil
		return done, !done, true
	}
	topic := r.n.t.topicOf(r.who.topic)
	if len(m.Key) == 0 || topic.AnyLane {
		return false, false, false
	}
	lane := client.PartitionOf(string(m.Key), r.n.t.lanes)
	if lane == r.n.lane {
		return false, false, false
	}
	x.moveTo(lane)
	if err := r.n.t.ensureAll(r.ctx, x.outputs()); err != nil {
		if r.ctx.Err() != nil {
			return false, true, true
		}
		r.n.t.outage("moving a misplaced message failed; retrying", err)
		return false, false, true
	}
	done = r.n.merge(x) == nil
	return done, !done, true
}

// message returns the Watermill message of x, whose context carries the transaction. It has no
// metadata if the transport is bare.
func (r *runner) message(ctx context.Context, x *tx) *message.Message {
	ctx = flow.WithTx(ctx, x)
	bare := r.n.t.bare
	if p := x.w.message; p != nil {
		m := message.NewMessageWithContext(ctx, p.ID, p.Body)
		if !bare {
			m.Metadata = p.Metadata()
		}
		return m
	}
	if bare {
		return message.NewMessageWithContext(ctx, uuidOf(x.w.record), x.w.record.Value)
	}
	uuid, meta := received(x.w.record)
	m := message.NewMessageWithContext(ctx, uuid, x.w.record.Value)
	m.Metadata = meta
	return m
}

// handled removes w from its queue.
func (r *runner) handled(w work) {
	switch w.kind {
	case fromLog:
		r.src.Load().pop()
	case fromPost:
		r.inbox.pop()
	}
}

// idle reports whether r has nothing to do, as far as this process knows.
func (r *runner) idle(now time.Time) bool {
	src := r.src.Load()
	if r.busy.Load() || r.n.late(r.who) || src == nil || !r.inbox.empty() {
		return false
	}
	if _, due, _ := r.wakes.Next(now); due || r.wakes.Waking() {
		return false
	}
	if !src.quiet() {
		return false
	}
	return r.n.position(r.who) >= r.n.t.head(r.who.topic, r.n.lane)
}

// mover is the group under which a lane stores the position up to which the misplaced records
// of a topic were moved, so that each is moved once although several groups read it.
const mover = "\x00mover"

// moveTo makes x move its record to lane, which is the one of its key, unless that has been done
// before. A record that is too large to publish, since its writer compressed it, goes to the
// dead letters.
func (x *tx) moveTo(lane int) {
	m := x.w.record
	o := forwarded(m, x.who.topic, lane)
	x.mu.Lock()
	x.moves = true
	x.mu.Unlock()
	if n := o.size(); n > client.MaxMessage {
		id := cmp.Or(o.uuid, flow.DeriveID("misplaced", x.position()))
		x.lease.t.log.Error("kafka: a message could not be moved to the partition of its key and goes to the dead letters: let its writer partition as Kafka's Java client does, or send less",
			"topic", x.who.topic, "position", x.position(), "id", id, "bytes", n)
		d := flow.DeadLetter{
			Reason: fmt.Sprintf("it is in partition %d and belongs to partition %d, and its %d bytes are more than the %d that a record may have (its body is not kept)", x.lease.lane, lane, n, client.MaxMessage),
			Time:   x.lease.t.now(), Attempts: 1, Topic: x.who.topic, Headers: o.meta,
		}
		o = outputOf(d.Message(id, string(m.Key), o.meta["ce_subject"]), x.lease.t.lanes)
	}
	x.collect(o)
}

// first reports whether x is the first to move its record, and records that. n.mu is held.
func (n *lease) first(b *batch, x *tx) bool {
	who := consumer{mover, x.who.topic}
	if n.positions[who] > x.w.record.Offset {
		return false
	}
	n.positions[who] = x.w.record.Offset + 1
	b.positions[who] = x.w.record.Offset + 1
	return true
}
