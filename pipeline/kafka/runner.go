package kafka

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

var errMoved = fmt.Errorf("kafka: %w", flow.ErrMoved)

// tx is the transaction of one attempt to handle one message. Its writes become part of a
// transaction of the lane when the message is acknowledged.
type tx = engine.Tx[output]

// reading is a consumer in a lane, for one runner.
type reading struct {
	n   *lease
	who consumer
	src *source
}

var (
	_ engine.Log               = (*reading)(nil)
	_ engine.Committer[output] = (*reading)(nil)
)

// runner returns the runner of who in the lane of n.
func (n *lease) runner(who consumer) *engine.Runner[output] {
	t := n.t
	r := &reading{n: n, who: who}
	return &engine.Runner[output]{
		Group: who.Group, Topic: who.Topic, Log: r, Committer: r, Reader: n, Outputs: outputs{t},
		Wakes: n.wakesOf(who), Inbox: t.inbox(who, n.lane), Now: t.clock.CheckedNow, Bare: t.bare, MaxPause: t.cfg.MaxPause,
		Broken: func(err error) {
			if !n.ended() && n.handling.Err() == nil {
				t.outage("passing on a message that no handler gets failed; retrying", err)
			}
		},
		Closing: t.ctx.Done(), Cutting: n.handling, Abandoned: n.abandoned, Signal: make(chan struct{}, 1),
	}
}

// Begin starts to read the topic from the position of the consumer.
func (r *reading) Begin(signal chan struct{}) (end func()) {
	r.n.mu.Lock()
	defer r.n.mu.Unlock()
	from, ok := r.n.positions[r.who]
	if !ok {
		from = sarama.OffsetOldest
	}
	r.src = newSource(r.n.t, r.who, r.n.lane, from, signal)
	r.n.sources[r.who] = r.src
	return r.src.close
}

// Peek returns the next record that a handler gets. It passes on the others: markers, and records in
// a lane that is not the one of their key.
func (r *reading) Peek() (engine.Work, bool, error) {
	for m := r.src.peek(); m != nil; m = r.src.peek() {
		if markerOf(m) == "" && !r.misplaced(m) {
			return r.work(m), true, nil
		}
		if err := r.pass(m); err != nil {
			return engine.Work{}, false, err
		}
		r.src.pop()
	}
	return engine.Work{}, false, nil
}

// work returns m as a message to handle.
func (r *reading) work(m *sarama.ConsumerMessage) engine.Work {
	w := engine.Work{
		Kind: engine.FromLog, Offset: m.Offset, Body: m.Value,
		Position: r.n.t.lineage + "/" + r.who.Topic + "/" + strconv.Itoa(r.n.lane) + "/" + strconv.FormatInt(m.Offset, 10),
	}
	w.ID, w.Meta = received(m)
	return w
}

// Late reports whether the wakes still wait for the messages in front of the marker.
func (r *reading) Late() bool { return r.n.late(r.who) }

// Admit waits until the OnCommit functions of earlier messages of the key have run, and while too
// much waits for the running transaction.
func (r *reading) Admit(w engine.Work) <-chan struct{} {
	r.n.mu.RLock()
	landed := r.n.unlanded[engine.Place{Group: r.who.Group, Key: w.Key()}]
	r.n.mu.RUnlock()
	if landed != nil {
		return landed
	}
	return r.n.crowded()
}

// Commit merges the writes of x into the next transaction of the lane.
func (r *reading) Commit(ctx context.Context, x *tx, _ <-chan struct{}) (done, over bool) {
	t := r.n.t
	if err := x.Fits(); err != nil {
		t.outage("the writes of a handler are too large to be committed; its message is delivered again and again", err)
		return false, false
	}
	err := x.Commit(func(e *engine.Effects[output]) error {
		if err := t.ensureAll(ctx, e.Out); err != nil {
			return err
		}
		return r.n.merge(r.who, x.Work, e, false)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil, r.n.ended():
		return false, true
	default:
		t.outage("creating a topic that a handler publishes to failed; retrying", err)
		return false, false
	}
	if x.Work.Kind == engine.FromLog {
		r.src.pop()
	}
	return true, false
}

// misplaced reports whether m is in a lane that is not the one of its key.
func (r *reading) misplaced(m *sarama.ConsumerMessage) bool {
	return len(m.Key) > 0 && client.PartitionOf(string(m.Key), r.n.t.lanes) != r.n.lane
}

// pass moves the consumer behind m, and moves m to the lane of its key unless that was done before.
func (r *reading) pass(m *sarama.ConsumerMessage) error {
	w, e := r.work(m), &engine.Effects[output]{Writes: new(engine.Writes)}
	if markerOf(m) != "" {
		return r.n.merge(r.who, w, e, false)
	}
	e.Out = []output{r.moved(m, w)}
	if err := r.n.t.ensureAll(r.n.handling, e.Out); err != nil {
		return fmt.Errorf("moving a misplaced message: %w", err)
	}
	return r.n.merge(r.who, w, e, true)
}

// moved returns m, which w is, as an output to the lane of its key. A record that is too large to
// publish, since its writer compressed it, goes to the dead letters.
func (r *reading) moved(m *sarama.ConsumerMessage, w engine.Work) output {
	t, to := r.n.t, client.PartitionOf(string(m.Key), r.n.t.lanes)
	o := forwarded(m, r.who.Topic, to)
	n := o.size()
	if n <= client.MaxMessage {
		return o
	}
	id := cmp.Or(o.uuid, flow.DeriveID("misplaced", w.Position))
	t.log.Error("kafka: a message could not be moved to the partition of its key and goes to the dead letters: let its writer partition as Kafka's Java client does, or send less",
		"topic", r.who.Topic, "position", w.Position, "id", id, "bytes", n)
	d := flow.DeadLetter{
		Reason: fmt.Sprintf("it is in partition %d and belongs to partition %d, and its %d bytes are more than the %d that a record may have (its body is not kept)", r.n.lane, to, n, client.MaxMessage),
		Time:   t.clock.Now(), Attempts: 1, Topic: r.who.Topic, Headers: o.meta,
	}
	return outputOf(d.Message(id, string(m.Key), o.meta["ce_subject"]), t.lanes)
}

// quiet reports whether r, the runner of who in the lane of n, has nothing to do, as far as this
// process knows.
func (n *lease) quiet(who consumer, r *engine.Runner[output], now time.Time) bool {
	src := n.source(who)
	if r.Busy() || n.late(who) || src == nil || !r.Inbox.Empty() {
		return false
	}
	if _, due, _ := r.Wakes.Next(now); due || r.Wakes.Waking() {
		return false
	}
	return src.quiet() && n.position(who) >= n.t.head(who.Topic, n.lane)
}

// source returns what reads the topic of who; nil if nothing does.
func (n *lease) source(who consumer) *source {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.sources[who]
}
