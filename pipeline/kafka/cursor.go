package kafka

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

var errMoved = fmt.Errorf("kafka: %w", flow.ErrMoved)

// cursor is a consumer in the lane of a lease: its wakes, its runner, and what the runner reads.
type cursor struct {
	n     *lease
	who   consumer
	wakes *engine.Wakes
	// timed says that the group keeps its wakes in its state; see flow.Topic.
	timed bool
	// seat is guarded by n.runMu.
	seat engine.Seat[output]
	// src reads the topic. It is nil until a runner has begun, and closed between two runners. Only the
	// runner may read it without n.mu.
	src *source
}

var _ engine.Lane[output] = (*cursor)(nil)

// cursor returns the cursor of who.
func (n *lease) cursor(who consumer) *cursor {
	n.cursorMu.Lock()
	defer n.cursorMu.Unlock()
	c := n.cursors[who]
	if c == nil {
		c = &cursor{n: n, who: who, wakes: engine.NewWakes(), timed: slices.Contains(n.t.topicOf(who.Topic).Timed, who.Group)}
		n.cursors[who] = c
	}
	return c
}

// allCursors lists the cursors.
func (n *lease) allCursors() []*cursor {
	n.cursorMu.Lock()
	defer n.cursorMu.Unlock()
	return slices.Collect(maps.Values(n.cursors))
}

// runner returns a runner of c.
func (c *cursor) runner() *engine.Runner[output] {
	n, t := c.n, c.n.t
	return &engine.Runner[output]{
		Group: c.who.Group, Topic: c.who.Topic, Lane: c, Reader: n, Outputs: outputs{t},
		Wakes: c.wakes, Inbox: t.inbox(c.who, n.lane), Now: t.clock.CheckedNow, Bare: t.wiring.Bare, MaxPause: t.cfg.MaxPause,
		Closing: t.ctx.Done(), Cutting: n.handling, Abandoned: n.abandoned, Signal: make(chan struct{}, 1),
	}
}

// Broken reports that pass failed, except when the lane is given up.
func (c *cursor) Broken(err error) {
	if !c.n.ended() && c.n.handling.Err() == nil {
		c.n.t.outage("passing on a message that no handler gets failed; retrying", err)
	}
}

// Begin starts to read the topic from the position of the consumer.
func (c *cursor) Begin(signal chan struct{}) (end func()) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	from, ok := c.n.positions[c.who]
	if !ok {
		from = sarama.OffsetOldest
	}
	c.src = newSource(c.n.t, c.who, c.n.lane, from, signal)
	return c.src.close
}

// Peek returns the next record that a handler gets. It passes on the others: markers, and records in
// a lane that is not the one of their key.
func (c *cursor) Peek() (engine.Work, bool, error) {
	for m := c.src.peek(); m != nil; m = c.src.peek() {
		if markerOf(m) == "" && !c.misplaced(m) {
			return c.work(m), true, nil
		}
		if err := c.pass(m); err != nil {
			return engine.Work{}, false, err
		}
		c.src.pop()
	}
	return engine.Work{}, false, nil
}

// work returns m as a message to handle.
func (c *cursor) work(m *sarama.ConsumerMessage) engine.Work {
	w := engine.Work{
		Kind: engine.FromLog, Offset: m.Offset, Body: m.Value,
		Position: c.n.t.lineage + "/" + c.who.Topic + "/" + strconv.Itoa(c.n.lane) + "/" + strconv.FormatInt(m.Offset, 10),
	}
	w.ID, w.Meta = received(m)
	return w
}

// Late reports whether the wakes still wait for the messages in front of the marker. The marker
// itself may have been deleted since.
func (c *cursor) Late() bool {
	at := c.n.position(c.who)
	c.n.cursorMu.Lock()
	defer c.n.cursorMu.Unlock()
	end, marked := c.n.marked[c.who.Topic]
	return marked && at <= end
}

// Admit waits until the OnCommit functions of earlier messages of the key have run, and while too
// much waits for the running transaction.
func (c *cursor) Admit(w engine.Work) <-chan struct{} {
	c.n.mu.RLock()
	landed := c.n.unlanded[engine.Place{Group: c.who.Group, Key: w.Key()}]
	c.n.mu.RUnlock()
	if landed != nil {
		return landed
	}
	return c.n.crowded()
}

// Commit merges the writes of x, one attempt to handle one message, into the next transaction of the lane.
func (c *cursor) Commit(ctx context.Context, x *engine.Tx[output], _ <-chan struct{}) (done, over bool) {
	t := c.n.t
	if err := x.Fits(); err != nil {
		t.outage("the writes of a handler are too large to be committed; its message is delivered again and again", err)
		return false, false
	}
	err := x.Commit(func(e *engine.Effects[output]) error {
		if err := t.ensureAll(ctx, e.Out); err != nil {
			return err
		}
		return c.n.merge(c, x.Work, e, false)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil, c.n.ended():
		return false, true
	default:
		t.outage("creating a topic that a handler publishes to failed; retrying", err)
		return false, false
	}
	if x.Work.Kind == engine.FromLog {
		c.src.pop()
	}
	return true, false
}

// misplaced reports whether m is in a lane that is not the one of its key.
func (c *cursor) misplaced(m *sarama.ConsumerMessage) bool {
	return len(m.Key) > 0 && client.PartitionOf(string(m.Key), c.n.t.lanes) != c.n.lane
}

// pass moves the consumer behind m, and moves m to the lane of its key unless that was done before.
func (c *cursor) pass(m *sarama.ConsumerMessage) error {
	w, e := c.work(m), &engine.Effects[output]{Writes: new(engine.Writes)}
	if markerOf(m) != "" {
		return c.n.merge(c, w, e, false)
	}
	e.Out = []output{c.moved(w)}
	if err := c.n.t.ensureAll(c.n.handling, e.Out); err != nil {
		return fmt.Errorf("moving a misplaced message: %w", err)
	}
	return c.n.merge(c, w, e, true)
}

// moved returns w as an output to the lane of its key. A record that is too large to publish, since
// its writer compressed it, goes to the dead letters.
func (c *cursor) moved(w engine.Work) output {
	t := c.n.t
	o := outputOfWatermill(c.who.Topic, w.ID, w.Meta, w.Body, t.lanes)
	n := o.size()
	if n <= client.MaxMessage {
		return o
	}
	id := cmp.Or(w.ID, flow.DeriveID("misplaced", w.Position))
	t.log.Error("kafka: a message could not be moved to the partition of its key and goes to the dead letters: let its writer partition as Kafka's Java client does, or send less",
		"topic", c.who.Topic, "position", w.Position, "id", id, "bytes", n)
	d := flow.DeadLetter{
		Reason: fmt.Sprintf("it is in partition %d and belongs to partition %d, and its %d bytes are more than the %d that a record may have (its body is not kept)", c.n.lane, o.lane, n, client.MaxMessage),
		Time:   t.clock.Now(), Attempts: 1, Topic: c.who.Topic, Headers: w.Meta,
	}
	return outputOf(d.Message(id, o.key, w.Meta["ce_subject"]), t.lanes)
}

// quiet reports whether c, which has a runner, has nothing to do, as far as this process knows. n.runMu
// is held.
func (c *cursor) quiet(now time.Time) bool {
	r, src := c.seat.Runner, c.source()
	if r.Busy() || c.Late() || src == nil || !r.Inbox.Empty() {
		return false
	}
	if _, due, _ := c.wakes.Next(now); due || c.wakes.Waking() {
		return false
	}
	return src.quiet() && !c.behind()
}

// behind reports whether c has not handled all that this process wrote.
func (c *cursor) behind() bool { return c.n.position(c.who) < c.n.t.head(c.who.Topic, c.n.lane) }

// source returns what reads the topic; nil if nothing does.
func (c *cursor) source() *source {
	c.n.mu.RLock()
	defer c.n.mu.RUnlock()
	return c.src
}
