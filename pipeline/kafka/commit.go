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
	// A batch of fullMessages or fullBytes does not wait.
	fullMessages = 20
	fullBytes    = 4 << 20
	// crowdedBytes is how much may wait in memory for the running transaction to end.
	crowdedBytes = 4 * fullBytes
	// lazyFor is how long writes that are not urgent wait for a transaction.
	lazyFor = 5 * time.Second
)

// consumer is a consumer group that reads a topic.
type consumer = engine.Consumer

// batch collects the writes of one transaction of a lane.
type batch struct {
	writes   engine.Writes
	out      []output
	own      map[string][]byte // records of the transport itself, by key
	onCommit []func()
	// urgent makes the batch commit soon, because somebody waits for it.
	urgent   bool
	messages int
	bytes    int
	began    time.Time
	sent     time.Time // when the transaction began
	// landed is closed when the batch is committed and all onCommit functions have run.
	landed chan struct{}
}

func newBatch() *batch {
	return &batch{landed: make(chan struct{}), own: make(map[string][]byte)}
}

// empty reports whether b holds no writes.
func (b *batch) empty() bool {
	return b.writes.Empty() && len(b.out)+len(b.own) == 0
}

// full reports whether b should be committed without waiting for more messages.
func (b *batch) full() bool {
	return b.messages >= fullMessages && b.urgent || b.bytes+b.writes.Bytes() >= fullBytes
}

// records returns the state records of b by key; a nil value is a tombstone.
func (b *batch) records() map[string][]byte {
	rs := maps.Clone(b.own)
	for w := range b.writes.All() {
		rs[changelog.Key(changelog.KindState, w.Place.Group, w.Place.Key, w.Name)] = w.Value
	}
	return rs
}

// produced returns the records to send: the outputs first, then the state in the order of its
// keys.
func produced(prefix string, lane int, out []output, state map[string][]byte) []*sarama.ProducerMessage {
	ms := make([]*sarama.ProducerMessage, 0, len(out)+len(state))
	for _, o := range out {
		ms = append(ms, o.record(prefix))
	}
	return append(ms, changelog.Messages(prefix+admin.TopicState, lane, state)...)
}

// How long a transaction may take.
const (
	// transactFor is longer than the producer tries each of its parts.
	transactFor = 3 * time.Minute
	// answeredFor is the limit while the brokers answer: they abort a transaction after ten
	// seconds, which the producer may not notice for minutes.
	answeredFor = 20 * time.Second
	// lookAtTxn is how often a running transaction is checked against these limits.
	lookAtTxn = 500 * time.Millisecond
)

var (
	errStuck  = errors.New("kafka: a transaction did not end in time")
	errFenced = fmt.Errorf("kafka: the producer can write no more: %w", sarama.ErrProducerFenced)
)

// merge adds what the handler of c did with w to the open batch. Later messages read it, and it is
// committed together with the position of the message. If nobody waits for it, it is committed with
// the next transaction, or lost together with the position. If moves is set, e moves w to another
// lane, and only the first group to read it does that.
func (n *lease) merge(c *cursor, w engine.Work, e *engine.Effects[output], moves bool) error {
	var logged, hints []output
	for _, o := range e.Out {
		if n.t.topicOf(o.topic).Ephemeral {
			hints = append(hints, o)
		} else {
			logged = append(logged, o)
		}
	}
	who, after := c.who, e.OnCommit
	if len(hints) > 0 {
		after = append([]func(){func() { n.t.hint(hints) }}, after...)
	}
	n.mu.Lock()
	if n.closed != nil {
		n.mu.Unlock()
		return n.closed
	}
	b := n.open
	if b.began.IsZero() {
		b.began = time.Now()
	}
	if moves && !n.first(who.Topic, w.Offset) {
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
	if w.Kind == engine.FromLog {
		n.move(who, w.Offset+1)
	}
	b.messages++
	b.urgent = b.urgent || e.Sync || len(logged) > 0
	now := false
	switch at := (engine.Place{Group: who.Group, Key: w.Key()}); {
	case b.urgent:
		n.postpone(b, at, after)
	case n.flight != nil: // keeps the order of the messages
		n.postpone(n.flight, at, after)
	default:
		now = true
	}
	n.mu.Unlock()
	for _, wake := range e.Wakes {
		c.wakes.Set(wake)
	}
	engine.Notify(n.signal)
	if now {
		for _, f := range after {
			f()
		}
	}
	n.t.activity.Add(1)
	return nil
}

// postpone runs after once b is committed. The next message of the same group and key waits for
// that, so that a handler can rely on the OnCommit functions of its previous message. n.mu is held.
func (n *lease) postpone(b *batch, at engine.Place, after []func()) {
	if len(after) == 0 {
		return
	}
	b.onCommit = append(b.onCommit, after...)
	n.unlanded[at] = b.landed
}

// mover is the group under which a lane stores the position up to which the misplaced records
// of a topic were moved, so that each is moved once although several groups read it.
const mover = "\x00mover"

// first reports whether the record of topic at offset was not moved yet, and stores that it is. n.mu
// is held.
func (n *lease) first(topic string, offset int64) bool {
	who := consumer{Group: mover, Topic: topic}
	if n.positions[who] > offset {
		return false
	}
	n.move(who, offset+1)
	return true
}

// move makes offset the next one of who. n.mu is held.
func (n *lease) move(who consumer, offset int64) {
	n.positions[who] = offset
	n.open.own[changelog.Key(changelog.KindPosition, who.Group, who.Topic)] = changelog.EncodeOffset(offset)
}

// commitLoop commits batches until a transaction fails or finish is closed. On finish it
// commits the rest.
func (n *lease) commitLoop() {
	defer close(n.committed)
	lazy := time.NewTicker(lazyFor / 4)
	defer lazy.Stop()
	for over := false; !over; {
		select {
		case <-n.signal:
		case <-lazy.C:
		case <-n.finish:
			over = true
		}
		due, wait := n.due()
		if wait && !over {
			time.Sleep(linger)
		}
		if !due && !over {
			continue
		}
		if err := n.commit(over); err != nil {
			n.fail(err)
			return
		}
	}
}

// due reports whether the open batch must be committed, and whether it may wait for more
// messages first.
func (n *lease) due() (due, wait bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	b := n.open
	due = !b.empty() && (b.urgent || b.full() || time.Since(b.began) >= lazyFor)
	return due, due && !b.full()
}

// commit writes the open batch in one transaction. The last one of a lease stores the time.
func (n *lease) commit(last bool) error {
	waking := n.waking()
	n.mu.Lock()
	b := n.open
	if n.closed != nil || b.empty() && !last {
		defer n.mu.Unlock()
		return n.closed
	}
	if now, ok := n.t.clock.Save(n.clock, last, func() bool { return waking }); ok {
		n.clock = now
		b.own[changelog.Key(changelog.KindClock)] = changelog.EncodeTime(now)
	}
	b.sent = time.Now()
	n.flight, n.open = b, newBatch()
	n.mu.Unlock()
	if b.empty() {
		n.landed(b)
		return nil
	}
	state := b.records()
	ms := produced(n.t.cfg.Prefix, n.lane, b.out, state)
	// A transaction that takes too long counts as failed: the next lease finds out whether it was committed.
	if err := n.inTime(context.Background(), func() error { return n.txns.Transact(ms) }); err != nil {
		return err
	}
	n.t.wrote(ms)
	at := int64(-1)
	for _, m := range ms {
		if m.Topic == n.t.cfg.Prefix+admin.TopicState {
			at = max(at, m.Offset+1)
		}
	}
	if err := n.t.copied(n, state, at); err != nil {
		return err
	}
	n.t.counts.commits.Add(1)
	n.t.activity.Add(1)
	n.landed(b)
	return nil
}

// inTime returns the result of f, which uses n's producer. It returns early with the cause of
// ctx, or with the reason why the transaction cannot succeed any more.
func (n *lease) inTime(ctx context.Context, f func() error) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	go func() { giveUp(n.hopeless(ctx)) }()
	return client.Run(ctx, f)
}

// hopeless waits until a transaction that begins now cannot succeed any more and returns the
// reason, or nil when ctx is done. Sarama retries for a minute with a producer that has failed
// for good.
func (n *lease) hopeless(ctx context.Context) error {
	t, began := n.t, time.Now()
	look := time.NewTicker(lookAtTxn)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-look.C:
			d := now.Sub(began)
			switch {
			case n.txns.Failed():
				return errFenced
			case d > t.transactFor, min(d, t.away.answering(now)) > t.answeredFor:
				return errStuck
			}
		}
	}
}

// landed runs the OnCommit functions of b in order, including those that are added meanwhile.
func (n *lease) landed(b *batch) {
	for {
		n.mu.Lock()
		after := b.onCommit
		b.onCommit = nil
		if len(after) == 0 {
			n.flight = nil
			maps.DeleteFunc(n.unlanded, func(_ engine.Place, landed <-chan struct{}) bool { return landed == b.landed })
			n.mu.Unlock()
			close(b.landed)
			return
		}
		n.mu.Unlock()
		for _, f := range after {
			f()
		}
	}
}
