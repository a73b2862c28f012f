package kafka

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Time limits of giving up a lane.
const (
	// handlerGrace is how long handlers may continue when the lane is taken away. After it their
	// contexts are cancelled, and they have as long again to return.
	handlerGrace = time.Second
	// commitTimeout is how long the last transaction may take.
	commitTimeout = 5 * time.Second
	// leaveTimeout is how long leaving the consumer group may take in all. Its first closeGroupTimeout
	// are for the end of the session, and outlast giving up the lanes.
	leaveTimeout      = 10 * time.Second
	closeGroupTimeout = 8 * time.Second
)

// lease is one period in which this process owns a lane. It begins when the previous owner is
// fenced, and ends when the lane is given up or a transaction fails. After a failure the next
// lease finds out whether the transaction was committed. Epoch counts the leases of a lane.
type lease struct {
	transport *Transport
	lane      int
	nonce     string
	producer  *client.Producer

	// ctx is done when the lease begins to end; its cause says why.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// signal wakes the committer.
	signal        chan struct{}
	finishing     chan struct{} // closed when no more writes are merged
	committerDone chan struct{} // closed when the committer has ended

	mu sync.RWMutex
	// closedErr is why no more writes are accepted; nil while they are.
	closedErr error
	// open collects writes; inFlight is being committed, and nil if no transaction is running.
	open, inFlight *batch
	positions      map[consumer]int64
	// pendingOnCommit has a channel for each key with pending OnCommit functions, closed when they have
	// run.
	pendingOnCommit map[engine.Place]<-chan struct{}
	// clock is the latest time in the state topic.
	clock time.Time

	// cursors are those of the consumers that were asked for; markerOffsets has the offset of our marker
	// by topic.
	cursorMu      sync.Mutex
	cursors       map[consumer]*cursor
	markerOffsets map[string]int64

	// handlerCtx is done when handlers must return; abandoned is closed when nobody waits for them
	// any longer.
	handlerCtx     context.Context
	cancelHandlers context.CancelFunc
	abandoned      chan struct{}

	// reading is how many runners have a message of the log to handle.
	reading atomic.Int32
	runMu   sync.Mutex // guards the seats of the cursors, too
	running bool
}

func newLease(t *Transport, lane int) *lease {
	n := &lease{
		transport: t, lane: lane, nonce: rand.Text(),
		signal: make(chan struct{}, 1), finishing: make(chan struct{}), committerDone: make(chan struct{}),
		open: newBatch(), positions: make(map[consumer]int64), pendingOnCommit: make(map[engine.Place]<-chan struct{}),
		cursors: make(map[consumer]*cursor), markerOffsets: make(map[string]int64), abandoned: make(chan struct{}),
	}
	n.handlerCtx, n.cancelHandlers = context.WithCancel(context.Background())
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	return n
}

// serve handles messages until ctx is done, or until a transaction fails: then it returns why.
func (n *lease) serve(ctx context.Context) error {
	unwatch := context.AfterFunc(ctx, func() { n.cancel(errMoved) })
	defer unwatch()
	go n.commitLoop()
	n.writeMarkers()
	n.runMu.Lock()
	n.running = true
	n.runMu.Unlock()
	n.transport.markWorking(n)
	for _, who := range n.transport.subs.Consumers() {
		n.startRunner(who)
	}
	<-n.ctx.Done()
	n.stopRunners()
	close(n.finishing)
	select {
	case <-n.committerDone:
	case <-time.After(commitTimeout):
	}
	n.mu.Lock()
	if n.closedErr == nil {
		n.closedErr = errMoved
	}
	n.mu.Unlock()
	n.transport.dropLease(n)
	go func() { _ = n.producer.Close() }() // may wait for unreachable brokers
	if err := context.Cause(n.ctx); !errors.Is(err, errMoved) {
		return err
	}
	return nil
}

// fail ends the lease because of err.
func (n *lease) fail(err error) {
	n.mu.Lock()
	if n.closedErr == nil {
		n.closedErr = err
	}
	n.mu.Unlock()
	n.cancel(err)
}

// startRunner starts a runner for the consumer who in this lane, if a subscription is to serve it.
func (n *lease) startRunner(who consumer) {
	n.runMu.Lock()
	defer n.runMu.Unlock()
	if !n.running {
		return
	}
	who = n.transport.chain.HeadOf(who)
	subs := n.transport.subs.Of(who, n.transport.chain.Behind(who), n.lane) // under the lock: a closed one must not be used
	c := n.cursor(who)
	c.seat.Give(subs, c.newRunner)
}

// stopRunners stops all runners and waits for their handlers for a limited time. That includes
// runners that were stopped earlier because another subscription serves the lane now.
func (n *lease) stopRunners() {
	n.runMu.Lock()
	n.running = false
	cursors := n.allCursors() // run gives no further one a runner
	for _, c := range cursors {
		c.seat.Give(nil, nil)
	}
	n.runMu.Unlock()
	cut := time.AfterFunc(handlerGrace, n.cancelHandlers)
	defer cut.Stop()
	abandon := time.AfterFunc(2*handlerGrace, func() { close(n.abandoned) })
	defer abandon.Stop()
	for _, c := range cursors {
		c.seat.Wait()
	}
	n.cancelHandlers()
}

// isClosed reports whether n accepts no more writes.
func (n *lease) isClosed() bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.closedErr != nil
}

// hasForcedWakes reports whether wakes are pending that come whatever the time is.
func (n *lease) hasForcedWakes() bool {
	return slices.ContainsFunc(n.allCursors(), func(c *cursor) bool { return c.wakes.Waking() })
}

// wakeAll makes every wake come once regardless of the time.
func (t *Transport) wakeAll() {
	for lane := range t.slots {
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

// writeMarkers writes a marker to each topic whose wakes come at the start. These wakes wait until the
// marker is read, because results of the work that they repeat may be in front of it.
func (n *lease) writeMarkers() {
	n.cursorMu.Lock()
	var ms []*sarama.ProducerMessage
	var topics []string
	for who, c := range n.cursors {
		topic := n.transport.chain.HeadOf(who).Topic
		if _, marked := n.markerOffsets[topic]; c.wakes.Waking() && !marked {
			n.markerOffsets[topic] = math.MaxInt64
			topics = append(topics, topic)
			ms = append(ms, newMarker(n.transport.cfg.Prefix+topic, n.lane, n.nonce))
		}
	}
	n.cursorMu.Unlock()
	if len(ms) == 0 {
		return
	}
	if err := n.transport.send(n.ctx, ms); err != nil {
		n.fail(fmt.Errorf("marking where the topics end: %w", err))
		return
	}
	n.cursorMu.Lock()
	defer n.cursorMu.Unlock()
	for i, topic := range topics {
		n.markerOffsets[topic] = ms[i].Offset
	}
}

// txnAge returns how long the current transaction has been running; 0 if there is none.
func (n *lease) txnAge() time.Duration {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.inFlight == nil {
		return 0
	}
	return time.Since(n.inFlight.txnStartedAt)
}

// roomChannel returns nil if more writes can be merged now, otherwise a channel that is closed when
// they can. Writes that wait for a transaction are kept in memory.
func (n *lease) roomChannel() <-chan struct{} {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.inFlight == nil || n.open.bytes+n.open.writes.Bytes() < maxWaitingBytes {
		return nil
	}
	return n.inFlight.done
}
