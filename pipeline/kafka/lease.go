package kafka

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Time limits of giving up a lane.
const (
	// finishFor is how long handlers may continue when the lane is taken away. After it their
	// contexts are cancelled, and they have as long again to return.
	finishFor = time.Second
	// commitFor is how long the last transaction may take.
	commitFor = 5 * time.Second
	// leaveFor is how long leaving the consumer group may take in all. Its first closeGroupFor
	// are for the end of the session, and outlast giving up the lanes.
	leaveFor      = 10 * time.Second
	closeGroupFor = 8 * time.Second
)

// lease is one period in which this process owns a lane. It begins when the previous owner is
// fenced, and ends when the lane is given up or a transaction fails. After a failure the next
// lease finds out whether the transaction was committed. Epoch counts the leases of a lane.
type lease struct {
	t     *Transport
	lane  int
	nonce string
	txns  *client.Producer

	// ctx is done when the lease begins to end; its cause says why.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// signal wakes the committer.
	signal    chan struct{}
	finish    chan struct{} // closed when no more writes are merged
	committed chan struct{} // closed when the committer has ended

	mu sync.RWMutex
	// closed is why no more writes are accepted; nil while they are.
	closed error
	// open collects writes; flight is being committed, and nil if no transaction is running.
	open, flight *batch
	positions    map[consumer]int64
	// unlanded has a channel for each key with pending OnCommit functions, closed when they have
	// run.
	unlanded map[engine.Place]<-chan struct{}
	// clock is the latest time in the state topic.
	clock time.Time

	// cursors are those of the consumers that were asked for; marked has the offset of our marker
	// by topic.
	cursorMu sync.Mutex
	cursors  map[consumer]*cursor
	marked   map[string]int64

	// handling is done when handlers must return; abandoned is closed when nobody waits for them
	// any longer.
	handling  context.Context
	cut       context.CancelFunc
	abandoned chan struct{}

	runMu   sync.Mutex // guards the seats of the cursors, too
	running bool
}

func newLease(t *Transport, lane int) *lease {
	n := &lease{
		t: t, lane: lane, nonce: rand.Text(), signal: make(chan struct{}, 1), finish: make(chan struct{}), committed: make(chan struct{}),
		open: newBatch(), positions: make(map[consumer]int64), unlanded: make(map[engine.Place]<-chan struct{}),
		cursors: make(map[consumer]*cursor), marked: make(map[string]int64), abandoned: make(chan struct{}),
	}
	n.handling, n.cut = context.WithCancel(context.Background())
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	return n
}

// serve handles messages until ctx is done, or until a transaction fails: then it returns why.
func (n *lease) serve(ctx context.Context) error {
	unwatch := context.AfterFunc(ctx, func() { n.cancel(errMoved) })
	defer unwatch()
	go n.commitLoop()
	n.mark()
	n.runMu.Lock()
	n.running = true
	n.runMu.Unlock()
	n.t.begin(n)
	for _, who := range n.t.subs.Consumers() {
		n.run(who)
	}
	<-n.ctx.Done()
	n.endRunners()
	close(n.finish)
	select {
	case <-n.committed:
	case <-time.After(commitFor):
	}
	n.mu.Lock()
	if n.closed == nil {
		n.closed = errMoved
	}
	n.mu.Unlock()
	n.t.disown(n)
	go func() { _ = n.txns.Close() }() // may wait for unreachable brokers
	if err := context.Cause(n.ctx); !errors.Is(err, errMoved) {
		return err
	}
	return nil
}

// fail ends the lease because of err.
func (n *lease) fail(err error) {
	n.mu.Lock()
	if n.closed == nil {
		n.closed = err
	}
	n.mu.Unlock()
	n.cancel(err)
}

// run makes the subscription that is to serve who in this lane serve it, if there is one.
func (n *lease) run(who consumer) {
	n.runMu.Lock()
	defer n.runMu.Unlock()
	if !n.running {
		return
	}
	sub := n.t.subs.Of(who, n.lane) // under the lock: a closed one must not be used
	c := n.cursor(who)
	c.seat.Give(sub, c.runner)
}

// endRunners stops all runners and waits for their handlers for a limited time. That includes
// runners that were stopped earlier because another subscription serves the lane now.
func (n *lease) endRunners() {
	n.runMu.Lock()
	n.running = false
	cursors := n.allCursors() // run gives no further one a runner
	for _, c := range cursors {
		c.seat.Give(nil, nil)
	}
	n.runMu.Unlock()
	cut := time.AfterFunc(finishFor, n.cut)
	defer cut.Stop()
	abandon := time.AfterFunc(2*finishFor, func() { close(n.abandoned) })
	defer abandon.Stop()
	for _, c := range cursors {
		c.seat.Wait()
	}
	n.cut()
}

// ended reports whether n accepts no more writes.
func (n *lease) ended() bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.closed != nil
}

// waking reports whether wakes are pending that come whatever the time is.
func (n *lease) waking() bool {
	return slices.ContainsFunc(n.allCursors(), func(c *cursor) bool { return c.wakes.Waking() })
}

// wakeAll makes every wake come once regardless of the time.
func (t *Transport) wakeAll() {
	for lane := range t.owned {
		if n := t.lease(lane); n != nil {
			n.wakeAll()
		}
	}
}

// wakeAll makes every wake of n come once regardless of the time.
func (n *lease) wakeAll() {
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for _, c := range n.allCursors() {
		c.wakes.WakeAll()
		if r := c.seat.Runner; r != nil {
			engine.Notify(r.Signal)
		}
	}
}

// mark writes a marker to each topic whose wakes come at the start. These wakes wait until the
// marker is read, because results of the work that they repeat may be in front of it.
func (n *lease) mark() {
	n.cursorMu.Lock()
	var ms []*sarama.ProducerMessage
	var topics []string
	for who, c := range n.cursors {
		if _, marked := n.marked[who.Topic]; c.wakes.Waking() && !marked {
			n.marked[who.Topic] = math.MaxInt64
			topics = append(topics, who.Topic)
			ms = append(ms, marker(n.t.cfg.Prefix+who.Topic, n.lane, n.nonce))
		}
	}
	n.cursorMu.Unlock()
	if len(ms) == 0 {
		return
	}
	if err := n.t.send(n.ctx, ms); err != nil {
		n.fail(fmt.Errorf("marking where the topics end: %w", err))
		return
	}
	n.cursorMu.Lock()
	defer n.cursorMu.Unlock()
	for i, topic := range topics {
		n.marked[topic] = ms[i].Offset
	}
}

// hanging returns how long the current transaction has been running; 0 if there is none.
func (n *lease) hanging() time.Duration {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.flight == nil {
		return 0
	}
	return time.Since(n.flight.sent)
}

// crowded returns nil if more writes can be merged now, otherwise a channel that is closed when
// they can. Writes that wait for a transaction are kept in memory.
func (n *lease) crowded() <-chan struct{} {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.flight == nil || n.open.bytes+n.open.writes.Bytes() < crowdedBytes {
		return nil
	}
	return n.flight.landed
}
