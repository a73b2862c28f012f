package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Intervals at which the brokers are checked.
const (
	watchInterval      = 2 * time.Second
	topicCheckInterval = time.Minute
	// slowTxn is the duration after which Ready reports an open transaction.
	slowTxn = 10 * time.Second
)

// counters are the counters behind Gauges.
type counters struct {
	commits, failedTxns, restoredRecords atomic.Uint64
	// restores counts the lanes that were restored, restoreNanos how long that took, in nanoseconds.
	restores, restoreNanos atomic.Uint64
}

// Ready returns nil while this process handles the messages of all lanes that are assigned to
// it, otherwise an error that says what it waits for. It does not block.
func (t *Transport) Ready() error {
	if since, reason := t.outage.current(time.Now()); reason != nil {
		return fmt.Errorf("kafka: %w (for %v)", reason, time.Since(since).Round(time.Second))
	}
	if !t.ready.Load() {
		return errors.New("kafka: connecting")
	}
	if err := t.room.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	member, assigned := t.memberID, slices.Sorted(maps.Keys(t.assigned))
	t.mu.Unlock() // a lease must not be asked under t.mu: it may hold its own lock and wait for t.mu
	if member == "" {
		return fmt.Errorf("kafka: waiting for lanes in the consumer group %s", t.cfg.Group)
	}
	var left []string
	for _, lane := range assigned {
		if n := t.lease(lane); n != nil {
			if d := n.txnAge(); d > slowTxn {
				return fmt.Errorf("kafka: a transaction of lane %d has not ended for %v", lane, d.Round(time.Second))
			}
			continue
		}
		if r := t.slots[lane].restoring.Load(); r != nil {
			left = append(left, fmt.Sprintf("lane %d: %d %%", lane, r.percent()))
		} else {
			left = append(left, fmt.Sprintf("lane %d", lane))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("kafka: restoring the state of %d of %d lanes (%s)", len(left), len(assigned), strings.Join(left[:min(len(left), 4)], ", "))
	}
	return nil
}

// Room returns nil while the disk of the state copies has room, otherwise a channel that is
// closed when it has room again.
func (t *Transport) Room() <-chan struct{} {
	if !t.ready.Load() {
		return nil
	}
	return t.room.Again()
}

// Activity is a counter that grows with every publication, post and commit.
func (t *Transport) Activity() uint64 { return t.activity.Load() }

// Idle reports whether this process has nothing to do: it is a member of the consumer group,
// every message that it knows of in its lanes is handled, nothing is in flight or posted, and
// no wake is due. It returns false if any of that changed during the call.
func (t *Transport) Idle() bool {
	before := t.activity.Load()
	t.mu.Lock()
	joined, n := t.memberID != "", len(t.assigned)
	t.mu.Unlock()
	if !joined || t.publishing.Load() > 0 || t.hasPosted() {
		return false
	}
	working := 0
	for lane := range t.slots {
		if n := t.lease(lane); n != nil {
			working++
			if !n.isIdle() {
				return false
			}
		}
	}
	return working == n && t.activity.Load() == before
}

// isIdle reports whether nothing is left to do in the lane of n.
func (n *lease) isIdle() bool {
	n.mu.RLock()
	busy := n.inFlight != nil || n.open.urgent
	n.mu.RUnlock()
	if busy {
		return false
	}
	now := n.transport.clock.Now()
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for _, c := range n.allCursors() {
		if c.seat.Runner != nil && !c.isIdle(now) {
			return false
		}
	}
	for name, topic := range n.transport.declaredTopics() {
		for _, group := range topic.Groups {
			if c := n.cursor(consumer{Group: group, Topic: name}); topic.ReadBy(group) && c.seat.Runner == nil && c.isBehind() {
				return false
			}
		}
	}
	return true
}

// position is the next offset that the consumer who will handle; 0 if it has handled nothing yet.
func (n *lease) position(who consumer) int64 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.positions[who]
}

// Gauges returns metrics about the lanes of this process.
func (t *Transport) Gauges() []flow.Gauge {
	if !t.ready.Load() {
		return nil
	}
	t.mu.Lock()
	assigned, restoring := len(t.assigned), 0
	for lane := range t.assigned {
		if t.lease(lane) == nil {
			restoring++
		}
	}
	t.mu.Unlock()
	gauges := []flow.Gauge{
		{Name: flow.GaugeLanes, Help: "Lanes, in all processes together.", Value: float64(t.lanes)},
		{Name: flow.GaugeLanesOwned, Help: "Lanes that this process owns.", Value: float64(assigned)},
		{Name: flow.GaugeLanesRestoring, Help: "Lanes that this process owns and whose state is still being restored.", Value: float64(restoring)},
		{Name: flow.GaugeRestored, Help: "Records of state that were read to restore lanes.", Value: float64(t.counters.restoredRecords.Load())},
		{Name: flow.GaugeTransactions, Help: "Transactions that were committed.", Value: float64(t.counters.commits.Load())},
		{Name: flow.GaugeTransactionsFailed, Help: "Transactions that failed; their messages are handled again.", Value: float64(t.counters.failedTxns.Load())},
		{Name: flow.GaugeRestores, Help: "Lanes whose state was restored.", Value: float64(t.counters.restores.Load())},
		{Name: flow.GaugeRestoreSeconds, Help: "Time that restoring lanes took in all, in seconds.", Value: time.Duration(t.counters.restoreNanos.Load()).Seconds()},
		{Name: flow.GaugeStoreBytes, Help: "Size of the copies of the state on disk, in bytes.", Value: float64(t.stateCopy.Size())},
	}
	lags := make(map[consumer]int64)
	for lane := range t.slots {
		if n := t.lease(lane); n != nil {
			n.addLags(lags)
		}
	}
	for who, lag := range lags {
		gauges = append(gauges, flow.Gauge{
			Name: flow.GaugeLag, Help: "How far a group is behind the end of a topic, in the lanes of this process.",
			Labels: map[string]string{"group": who.Group, "topic": who.Topic}, Value: float64(lag),
		})
	}
	return gauges
}

// addLags adds to by how far the runners of n are behind the ends of their topics.
func (n *lease) addLags(by map[consumer]int64) {
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for _, c := range n.allCursors() {
		if offset, end := c.progress(); c.seat.Runner != nil {
			by[c.consumer] += max(end-offset, 0)
		}
	}
}

const (
	// failureTTL is how long a failure keeps the Transport from being ready if it does not occur
	// again. It is longer than any retry interval.
	failureTTL = 15 * time.Second
	// logInterval is how often a lasting failure is logged.
	logInterval = time.Minute
)

// outage is what currently keeps the Transport from working. Its begin and its end are logged,
// not every failure in between.
type outage struct {
	mu sync.Mutex
	// waitReason is what the Transport waits for, mostly brokers that do not answer; waitingSince is when
	// that began.
	waitReason   error
	waitingSince time.Time
	// answeringSince is when the brokers began to answer; zero while they do not.
	answeringSince time.Time
	// missingRights are the rights that the brokers deny; deniedAt is when that began.
	missingRights string
	deniedAt      time.Time
	// failures are the operations that failed and are retried, by name.
	failures map[string]*ongoingFailure
	// startedAt is when the outage was first logged, lastLogged when one of the failures was; zero if there is none.
	startedAt, lastLogged time.Time
}

type ongoingFailure struct {
	reason              error
	first, last, logged time.Time
}

// reportFailure records that an operation failed and will be retried.
func (t *Transport) reportFailure(what string, err error) {
	o, now := &t.outage, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failures == nil {
		o.failures = make(map[string]*ongoingFailure)
	}
	tr := o.failures[what]
	if tr == nil || now.Sub(tr.last) > failureTTL {
		tr = &ongoingFailure{first: now}
		o.failures[what] = tr
	}
	tr.last, tr.reason = now, fmt.Errorf("%s: %s", what, t.cfg.cause(err))
	// One failure often causes others: what fails soon after a line of the log gets none.
	if o.waitReason != nil || o.missingRights != "" || now.Sub(tr.logged) < logInterval || now.Sub(o.lastLogged) < failureTTL {
		t.log.Debug("kafka: "+what, "error", err)
		return
	}
	tr.logged, o.lastLogged = now, now
	if o.startedAt.IsZero() {
		o.startedAt = now
	}
	t.log.Warn("kafka: "+what, "error", t.cfg.cause(err))
}

// setWaiting records what the Transport waits for; nil ends the wait.
func (t *Transport) setWaiting(reason error) {
	o := &t.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waitReason == nil {
		o.waitingSince = time.Now()
	}
	o.waitReason, o.answeringSince = reason, time.Time{}
}

// setAnswering records that the brokers answer. If they did not answer before, that explains all
// failures, and they are over. Otherwise those are over that did not occur again recently.
func (t *Transport) setAnswering() {
	o, now := &t.outage, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for what, tr := range o.failures {
		if o.waitReason != nil || now.Sub(tr.last) > failureTTL {
			delete(o.failures, what)
		}
	}
	o.waitReason = nil
	if o.answeringSince.IsZero() {
		o.answeringSince = now
	}
	if !o.startedAt.IsZero() && len(o.failures) == 0 {
		t.log.Info("kafka: working again", "after", now.Sub(o.startedAt).Round(100*time.Millisecond))
		o.startedAt, o.lastLogged = time.Time{}, time.Time{}
	}
}

// answeringFor returns how long the brokers have been answering; 0 while they do not.
func (o *outage) answeringFor(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.answeringSince.IsZero() {
		return 0
	}
	return now.Sub(o.answeringSince)
}

// current returns why the Transport does not work and since when; nil if it does.
func (o *outage) current(now time.Time) (since time.Time, reason error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waitReason != nil {
		return o.waitingSince, o.waitReason
	}
	if o.missingRights != "" {
		return o.deniedAt, fmt.Errorf("rights are missing: allow %s", o.missingRights)
	}
	for _, tr := range o.failures {
		if now.Sub(tr.last) <= failureTTL && (reason == nil || tr.first.Before(since)) {
			reason, since = tr.reason, tr.first
		}
	}
	return since, reason
}

// retryWhileAway retries f while it fails for brokers that are not available yet: one that has just
// restarted leads no partition for a moment. When ctx is done it returns the cause.
func retryWhileAway[T any](ctx context.Context, t *Transport, f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if err == nil || !client.Away(err) {
			return v, err
		}
		t.reportFailure("the brokers are not available yet; retrying", err)
		if err := client.Sleep(ctx, retryPause); err != nil {
			return v, err
		}
	}
}

// retryPause is how long retryWhileAway waits between two attempts.
const retryPause = 500 * time.Millisecond

// cause describes err in words for the operator.
func (c Config) cause(err error) string {
	switch {
	case errors.Is(err, sarama.ErrFencedInstancedId):
		return fmt.Sprintf("another process has the same instance_id (%s): give each one of its own", c.InstanceID)
	case errors.Is(err, sarama.ErrProducerFenced), errors.Is(err, sarama.ErrInvalidProducerEpoch):
		return "another producer has its transactional ID now"
	case errors.Is(err, sarama.ErrTransactionalIDAuthorizationFailed):
		return fmt.Sprintf("a right is missing: allow Write on the transactional IDs that begin with %s-", c.Group)
	}
	return c.clusterConfig().Cause(err)
}
