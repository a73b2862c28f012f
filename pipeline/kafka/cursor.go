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
	lease    *lease
	consumer consumer
	wakes    *engine.Wakes
	// links are those of the chain behind the consumer. Each has a cursor of its own, without a runner, which has its
	// wakes.
	links []*engine.Link
	// timed says that the group keeps its wakes in its state; see flow.Topic.
	timed bool
	// seat is guarded by lease.runMu.
	seat engine.Seat[output]
	// source reads the topic. It is nil until a runner has begun, and closed between two runners. Only the
	// runner may read it without lease.mu.
	source *source
	// isReading says that the last look at the source found a message, whose turn did not have to wait for a
	// transaction. Only the runner reads it.
	isReading bool
}

var _ engine.Lane[output] = (*cursor)(nil)

// cursor returns the cursor of the consumer who.
func (n *lease) cursor(who consumer) *cursor {
	n.cursorMu.Lock()
	defer n.cursorMu.Unlock()
	return n.cursorLocked(who)
}

// cursorLocked is cursor while n.cursorMu is held.
func (n *lease) cursorLocked(who consumer) *cursor {
	c := n.cursors[who]
	if c == nil {
		c = &cursor{
			lease: n, consumer: who, wakes: engine.NewWakes(),
			timed: slices.Contains(n.transport.declaredTopic(who.Topic).Timed, who.Group),
		}
		for _, behind := range n.transport.chain.Behind(who) {
			c.links = append(c.links, &engine.Link{Consumer: behind, Wakes: n.cursorLocked(behind).wakes})
		}
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

// newRunner returns a runner of c.
func (c *cursor) newRunner() *engine.Runner[output] {
	n, t := c.lease, c.lease.transport
	return &engine.Runner[output]{
		Group: c.consumer.Group, Topic: c.consumer.Topic, Lane: c, Reader: n, Outputs: outputs{t},
		Wakes: c.wakes, Links: c.links, Inbox: t.inbox(c.consumer, n.lane), Now: t.clock.CheckedNow, Bare: t.wiring.Bare,
		Unhandled: t.wiring.Unhandled, Rejected: t.wiring.Rejected, MaxPause: t.cfg.MaxPause,
		Closing: t.ctx.Done(), Cutting: n.handlerCtx, Abandoned: n.abandoned, Signal: make(chan struct{}, 1),
	}
}

// Broken reports that skip failed, except when the lane is given up.
func (c *cursor) Broken(err error) {
	if !c.lease.isClosed() && c.lease.handlerCtx.Err() == nil {
		c.lease.transport.reportFailure("passing on a message that no handler gets failed; retrying", err)
	}
}

// Begin starts to read the topic from the position of the consumer.
func (c *cursor) Begin(signal chan struct{}) (end func()) {
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	from, ok := c.lease.positions[c.consumer]
	if !ok {
		from = sarama.OffsetOldest
	}
	c.source = newSource(c.lease.transport, c.consumer, c.lease.lane, from, signal)
	return func() {
		c.setReading(false)
		c.source.close()
	}
}

// setReading notes whether the runner has a message of the log to handle.
func (c *cursor) setReading(is bool) {
	switch {
	case is && !c.isReading:
		c.lease.reading.Add(1)
	case !is && c.isReading:
		c.lease.reading.Add(-1)
	}
	c.isReading = is
}

// Peek returns the next record that a handler gets. It passes on the others: markers, and records in
// a lane that is not the one of their key.
func (c *cursor) Peek() (engine.Work, bool, error) {
	for m := c.source.peek(); m != nil; m = c.source.peek() {
		if markerOwner(m) == "" && !c.isMisplaced(m) {
			c.setReading(true)
			return c.workOf(m), true, nil
		}
		if err := c.skip(m); err != nil {
			return engine.Work{}, false, err
		}
		c.source.pop()
	}
	c.setReading(false)
	return engine.Work{}, false, nil
}

// workOf returns m as a message to handle.
func (c *cursor) workOf(m *sarama.ConsumerMessage) engine.Work {
	w := engine.Work{
		Kind: engine.FromLog, Offset: m.Offset,
		Position: c.lease.transport.lineage + "/" + c.consumer.Topic + "/" + strconv.Itoa(c.lease.lane) + "/" + strconv.FormatInt(m.Offset, 10),
	}
	w.ID, w.Meta, w.Body = decodeRecord(m)
	return w
}

// Late reports whether the wakes still wait for the messages in front of the marker. The marker
// itself may have been deleted since.
func (c *cursor) Late(string) bool {
	at := c.lease.position(c.consumer)
	c.lease.cursorMu.Lock()
	defer c.lease.cursorMu.Unlock()
	end, marked := c.lease.markerOffsets[c.consumer.Topic]
	return marked && at <= end
}

// Admit waits until the OnCommit functions of earlier messages of the key have run, and while too
// much waits for the running transaction.
func (c *cursor) Admit(w engine.Work) <-chan struct{} {
	c.lease.mu.RLock()
	landed := c.lease.pendingOnCommit[engine.Place{Group: c.consumer.Group, Key: w.Key()}]
	c.lease.mu.RUnlock()
	if landed == nil {
		landed = c.lease.roomChannel()
	}
	if landed != nil {
		c.setReading(false)
	}
	return landed
}

// Commit merges the writes of x, one attempt to handle one message, into the next transaction of the lane.
func (c *cursor) Commit(ctx context.Context, x *engine.Tx[output], _ <-chan struct{}) (done, over bool) {
	t := c.lease.transport
	if err := x.Fits(); err != nil {
		t.reportFailure("the writes of a handler are too large to be committed; its message is delivered again and again", err)
		return false, false
	}
	err := x.Commit(func(e *engine.Effects[output]) error {
		if err := t.ensureTopics(ctx, e.Out); err != nil {
			return err
		}
		return c.lease.merge(c, x.Work, e, false)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil, c.lease.isClosed():
		return false, true
	default:
		t.reportFailure("creating a topic that a handler publishes to failed; retrying", err)
		return false, false
	}
	if x.Work.Kind == engine.FromLog {
		c.source.pop()
	}
	return true, false
}

// isMisplaced reports whether m is in a lane that is not the one of its key.
func (c *cursor) isMisplaced(m *sarama.ConsumerMessage) bool {
	return len(m.Key) > 0 && client.PartitionOf(string(m.Key), c.lease.transport.lanes) != c.lease.lane
}

// skip moves the consumer behind m, and moves m to the lane of its key unless that was done before.
func (c *cursor) skip(m *sarama.ConsumerMessage) error {
	w, e := c.workOf(m), &engine.Effects[output]{Writes: new(engine.Writes)}
	if markerOwner(m) != "" {
		return c.lease.merge(c, w, e, false)
	}
	e.Out = []output{c.movedOutput(w)}
	if err := c.lease.transport.ensureTopics(c.lease.handlerCtx, e.Out); err != nil {
		return fmt.Errorf("moving a misplaced message: %w", err)
	}
	return c.lease.merge(c, w, e, true)
}

// movedOutput returns w as an output to the lane of its key. A record that is too large to publish, since
// its writer compressed it, goes to the dead letters.
func (c *cursor) movedOutput(w engine.Work) output {
	t := c.lease.transport
	o := outputOfWatermill(c.consumer.Topic, w.ID, w.Meta, t.schemaIDs.Frame(w.Meta["ce_type"], w.Body), t.lanes)
	n := o.size()
	if n <= client.MaxMessage {
		return o
	}
	id := cmp.Or(w.ID, flow.DeriveID("misplaced", w.Position))
	t.log.Error("kafka: a message could not be moved to the partition of its key and goes to the dead letters: let its writer partition as Kafka's Java client does, or send less",
		"topic", c.consumer.Topic, "position", w.Position, "id", id, "bytes", n)
	d := flow.DeadLetter{
		Reason: fmt.Sprintf("it is in partition %d and belongs to partition %d, and its %d bytes are more than the %d that a record may have (its body is not kept)", c.lease.lane, o.lane, n, client.MaxMessage),
		Time:   t.clock.Now(), Attempts: 1, Topic: c.consumer.Topic, Headers: w.Meta,
	}
	return outputs{t}.Output(d.Message(id, o.key, w.Meta["ce_subject"]))
}

// isIdle reports whether c, which has a runner, has nothing to do, as far as this process knows. c.lease.runMu
// is held.
func (c *cursor) isIdle(now time.Time) bool {
	r, src := c.seat.Runner, c.currentSource()
	if r.Busy() || c.Late(c.consumer.Group) || src == nil || !r.Inbox.Empty() {
		return false
	}
	if c.wakes.Pending(now) || slices.ContainsFunc(c.links, func(l *engine.Link) bool { return l.Wakes.Pending(now) }) {
		return false
	}
	return src.isAtEnd() && !c.isBehind()
}

// isBehind reports whether c has not handled all that this process wrote.
func (c *cursor) isBehind() bool {
	return c.lease.position(c.consumer) < c.lease.transport.writtenEnd(c.consumer.Topic, c.lease.lane)
}

// currentSource returns what reads the topic; nil if nothing does.
func (c *cursor) currentSource() *source {
	c.lease.mu.RLock()
	defer c.lease.mu.RUnlock()
	return c.source
}
