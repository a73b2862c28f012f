package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// How much becomes one transaction.
const (
	// linger is how long a transaction waits for more messages: one transaction per message
	// would halve the throughput of a lane.
	linger = 5 * time.Millisecond
	// maxLinger is how long it waits while its lane has more messages to handle: the fewer transactions, the less
	// the brokers have to do.
	maxLinger = 100 * time.Millisecond
	// A batch of maxBatchRecords or maxBatchBytes does not wait. A change that is told writes some 15 records.
	maxBatchRecords = 256
	maxBatchBytes   = 4 << 20
	// maxWaitingBytes is how much may wait in memory for the running transaction to end.
	maxWaitingBytes = 4 * maxBatchBytes
	// maxLazyDelay is how long writes that are not urgent wait for a transaction.
	maxLazyDelay = 5 * time.Second
)

// consumer is a consumer group that reads a topic.
type consumer = engine.Consumer

// batch collects the writes of one transaction of a lane.
type batch struct {
	writes           engine.Writes
	out              []output
	transportRecords map[string][]byte // records of the transport itself, by key
	onCommit         []func()
	// urgent makes the batch commit soon, because somebody waits for it.
	urgent       bool
	bytes        int
	startedAt    time.Time
	txnStartedAt time.Time // when the transaction began
	// done is closed when the batch is committed and all onCommit functions have run.
	done chan struct{}
}

func newBatch() *batch {
	return &batch{done: make(chan struct{}), transportRecords: make(map[string][]byte)}
}

// isEmpty reports whether b holds no writes.
func (b *batch) isEmpty() bool {
	return b.writes.Empty() && len(b.out)+len(b.transportRecords) == 0
}

// isFull reports whether b should be committed without waiting for more messages.
func (b *batch) isFull() bool {
	return len(b.out)+b.writes.Len() >= maxBatchRecords && b.urgent || b.bytes+b.writes.Bytes() >= maxBatchBytes
}

// records returns the state records of b by key; a nil value is a tombstone.
func (b *batch) records() map[string][]byte {
	rs := maps.Clone(b.transportRecords)
	for w := range b.writes.All() {
		rs[changelog.Key(changelog.KindState, w.Place.Group, w.Place.Key, w.Name)] = w.Value
	}
	return rs
}

// producerMessages returns the records to send: the outputs first, then the state in the order of its
// keys.
func producerMessages(prefix string, lane int, out []output, state map[string][]byte) []*sarama.ProducerMessage {
	ms := make([]*sarama.ProducerMessage, 0, len(out)+len(state))
	for _, o := range out {
		ms = append(ms, o.record(prefix))
	}
	return append(ms, changelog.Messages(prefix+admin.TopicState, lane, state)...)
}

// How long a transaction may take.
const (
	// txnTimeout is longer than the producer tries each of its parts.
	txnTimeout = 3 * time.Minute
	// answeredTxnTimeout is the limit while the brokers answer: they abort a transaction after ten
	// seconds, which the producer may not notice for minutes.
	answeredTxnTimeout = 20 * time.Second
	// txnCheckInterval is how often a running transaction is checked against these limits.
	txnCheckInterval = 500 * time.Millisecond
)

var (
	errTxnTimeout = errors.New("kafka: a transaction did not end in time")
	errFenced     = fmt.Errorf("kafka: the producer can write no more: %w", sarama.ErrProducerFenced)
)

// merge adds what the handler of c did with w to the open batch. Later messages read it, and it is
// committed together with the position of the message. If nobody waits for it, it is committed with
// the next transaction, or lost together with the position. If moves is set, e moves w to another
// lane, and only the first group to read it does that.
func (n *lease) merge(c *cursor, w engine.Work, e *engine.Effects[output], moves bool) error {
	var logged, hints []output
	for _, o := range e.Out {
		if n.transport.declaredTopic(o.topic).Ephemeral {
			hints = append(hints, o)
		} else {
			logged = append(logged, o)
		}
	}
	who, after := c.consumer, e.OnCommit
	if len(hints) > 0 {
		after = append([]func(){func() { n.transport.publishInBackground(hints) }}, after...)
	}
	n.mu.Lock()
	if n.closedErr != nil {
		n.mu.Unlock()
		return n.closedErr
	}
	b := n.open
	if b.startedAt.IsZero() {
		b.startedAt = time.Now()
	}
	if moves && !n.claimMove(who.Topic, w.Offset) {
		logged, after = nil, nil
	}
	b.writes.Merge(e.Writes)
	b.out = append(b.out, logged...)
	for _, o := range logged {
		b.bytes += o.size()
	}
	if !c.timed {
		for _, wake := range e.Wakes {
			b.writes.Set(engine.Place{Group: engine.WakeGroup(who.Group, who.Topic), Key: wake.Key}, flow.WakeName, wake.Value())
		}
	}
	for _, wake := range e.LinkWakes {
		b.writes.Set(engine.Place{Group: engine.WakeGroup(wake.Group, wake.Topic), Key: wake.Key}, flow.WakeName, wake.Value())
	}
	if w.Kind == engine.FromLog {
		n.setPosition(who, w.Offset+1)
	}
	b.urgent = b.urgent || e.Sync || len(logged) > 0
	now := false
	switch at := (engine.Place{Group: who.Group, Key: w.Key()}); {
	case b.urgent:
		n.deferOnCommit(b, at, after)
	case n.inFlight != nil: // keeps the order of the messages
		n.deferOnCommit(n.inFlight, at, after)
	default:
		now = true
	}
	n.mu.Unlock()
	for _, wake := range e.Wakes {
		c.wakes.Set(wake)
	}
	for _, wake := range e.LinkWakes {
		wake.Wakes.Set(wake.Wake)
	}
	engine.Notify(n.signal)
	if now {
		for _, f := range after {
			f()
		}
	}
	n.transport.activity.Add(1)
	return nil
}

// deferOnCommit runs after once b is committed. The next message of the same group and key waits for
// that, so that a handler can rely on the OnCommit functions of its previous message. n.mu is held.
func (n *lease) deferOnCommit(b *batch, at engine.Place, after []func()) {
	if len(after) == 0 {
		return
	}
	b.onCommit = append(b.onCommit, after...)
	n.pendingOnCommit[at] = b.done
}

// moveGroup is the group under which a lane stores the position up to which the misplaced records
// of a topic were moved, so that each is moved once although several groups read it.
const moveGroup = "\x00mover"

// claimMove reports whether the record of topic at offset was not moved yet, and stores that it is. n.mu
// is held.
func (n *lease) claimMove(topic string, offset int64) bool {
	who := consumer{Group: moveGroup, Topic: topic}
	if n.positions[who] > offset {
		return false
	}
	n.setPosition(who, offset+1)
	return true
}

// setPosition makes offset the next one of the consumer who. n.mu is held.
func (n *lease) setPosition(who consumer, offset int64) {
	n.positions[who] = offset
	n.open.transportRecords[changelog.Key(changelog.KindPosition, who.Group, who.Topic)] = changelog.EncodeOffset(offset)
}

// commitLoop commits batches until a transaction fails or finishing is closed. Then it
// commits the rest.
func (n *lease) commitLoop() {
	defer close(n.committerDone)
	lazy := time.NewTicker(maxLazyDelay / 4)
	defer lazy.Stop()
	for over := false; !over; {
		select {
		case <-n.signal:
		case <-lazy.C:
		case <-n.finishing:
			over = true
		}
		due, wait := n.batchDue()
		for began := time.Now(); wait && !over; _, wait = n.batchDue() {
			time.Sleep(linger)
			if n.reading.Load() == 0 || time.Since(began) >= maxLinger {
				break
			}
		}
		if !due && !over {
			continue
		}
		if err := n.commitBatch(over); err != nil {
			n.fail(err)
			return
		}
	}
}

// batchDue reports whether the open batch must be committed, and whether it may wait for more
// messages first.
func (n *lease) batchDue() (due, wait bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	b := n.open
	due = !b.isEmpty() && (b.urgent || b.isFull() || time.Since(b.startedAt) >= maxLazyDelay)
	return due, due && !b.isFull()
}

// commitBatch writes the open batch in one transaction. The last one of a lease stores the time.
func (n *lease) commitBatch(last bool) error {
	waking := n.hasForcedWakes()
	n.mu.Lock()
	b := n.open
	if n.closedErr != nil || b.isEmpty() && !last {
		defer n.mu.Unlock()
		return n.closedErr
	}
	if now, ok := n.transport.clock.Save(n.clock, last, func() bool { return waking }); ok {
		n.clock = now
		b.transportRecords[changelog.Key(changelog.KindClock)] = changelog.EncodeTime(now)
	}
	b.txnStartedAt = time.Now()
	n.inFlight, n.open = b, newBatch()
	n.mu.Unlock()
	if b.isEmpty() {
		n.runOnCommit(b)
		return nil
	}
	state := b.records()
	ms := producerMessages(n.transport.cfg.Prefix, n.lane, b.out, state)
	// A transaction that takes too long counts as failed: the next lease finds out whether it was committed.
	if err := n.withTxnTimeout(context.Background(), func() error { return n.producer.Transact(ms) }); err != nil {
		return err
	}
	n.transport.recordWritten(ms)
	at := int64(-1)
	for _, m := range ms {
		if m.Topic == n.transport.cfg.Prefix+admin.TopicState {
			at = max(at, m.Offset+1)
		}
	}
	if err := n.transport.writeCopy(n, state, at); err != nil {
		return err
	}
	n.transport.counters.commits.Add(1)
	n.transport.activity.Add(1)
	n.runOnCommit(b)
	return nil
}

// withTxnTimeout returns the result of f, which uses n's producer. It returns early with the cause of
// ctx, or with the reason why the transaction cannot succeed any more.
func (n *lease) withTxnTimeout(ctx context.Context, f func() error) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	go func() { giveUp(n.awaitTxnFailure(ctx)) }()
	return client.Run(ctx, f)
}

// awaitTxnFailure waits until a transaction that begins now cannot succeed any more and returns the
// reason, or nil when ctx is done. Sarama retries for a minute with a producer that has failed
// for good.
func (n *lease) awaitTxnFailure(ctx context.Context) error {
	t, began := n.transport, time.Now()
	look := time.NewTicker(txnCheckInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-look.C:
			d := now.Sub(began)
			switch {
			case n.producer.Failed():
				return errFenced
			case d > t.txnTimeout, min(d, t.outage.answeringFor(now)) > t.answeredTxnTimeout:
				return errTxnTimeout
			}
		}
	}
}

// runOnCommit runs the OnCommit functions of b in order, including those that are added meanwhile.
func (n *lease) runOnCommit(b *batch) {
	for {
		n.mu.Lock()
		after := b.onCommit
		b.onCommit = nil
		if len(after) == 0 {
			n.inFlight = nil
			maps.DeleteFunc(n.pendingOnCommit, func(_ engine.Place, landed <-chan struct{}) bool { return landed == b.done })
			n.mu.Unlock()
			close(b.done)
			return
		}
		n.mu.Unlock()
		for _, f := range after {
			f()
		}
	}
}
