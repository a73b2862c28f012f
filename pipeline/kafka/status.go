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
	lookEvery   = 2 * time.Second
	topicsEvery = time.Minute
	// slowCommit is the duration after which Ready reports an open transaction.
	slowCommit = 10 * time.Second
)

// counts are the counters behind Gauges.
type counts struct {
	commits, failed, restored atomic.Uint64
	// lanes counts the lanes that were restored, restoring how long that took, in nanoseconds.
	lanes, restoring atomic.Uint64
}

// Ready returns nil while this process handles the messages of all lanes that are assigned to
// it, otherwise an error that says what it waits for. It does not block.
func (t *Transport) Ready() error {
	if since, reason := t.away.present(time.Now()); reason != nil {
		return fmt.Errorf("kafka: %w (for %v)", reason, time.Since(since).Round(time.Second))
	}
	if !t.ready.Load() {
		return errors.New("kafka: connecting")
	}
	if err := t.room.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	member, assigned := t.member, slices.Sorted(maps.Keys(t.assigned))
	t.mu.Unlock() // a lease must not be asked under t.mu: it may hold its own lock and wait for t.mu
	if member == "" {
		return fmt.Errorf("kafka: waiting for lanes in the consumer group %s", t.cfg.Group)
	}
	var left []string
	for _, lane := range assigned {
		if n := t.lease(lane); n != nil {
			if d := n.hanging(); d > slowCommit {
				return fmt.Errorf("kafka: a transaction of lane %d has not ended for %v", lane, d.Round(time.Second))
			}
			continue
		}
		if r := t.owned[lane].restoring.Load(); r != nil {
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
	joined, n := t.member != "", len(t.assigned)
	t.mu.Unlock()
	if !joined || t.sending.Load() > 0 || t.posted() {
		return false
	}
	working := 0
	for lane := range t.owned {
		if n := t.lease(lane); n != nil {
			working++
			if !n.idle() {
				return false
			}
		}
	}
	return working == n && t.activity.Load() == before
}

// idle reports whether nothing is left to do in the lane of n.
func (n *lease) idle() bool {
	n.mu.RLock()
	busy := n.flight != nil || n.open.urgent
	n.mu.RUnlock()
	if busy {
		return false
	}
	now := n.t.clock.Now()
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for _, c := range n.allCursors() {
		if c.seat.Runner != nil && !c.quiet(now) {
			return false
		}
	}
	for name, topic := range n.t.declaredTopics() {
		for _, group := range topic.Groups {
			if c := n.cursor(consumer{Group: group, Topic: name}); c.seat.Runner == nil && c.behind() {
				return false
			}
		}
	}
	return true
}

// position is the next offset that who will handle; 0 if it has handled nothing yet.
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
		{Name: flow.GaugeRestored, Help: "Records of state that were read to restore lanes.", Value: float64(t.counts.restored.Load())},
		{Name: flow.GaugeTransactions, Help: "Transactions that were committed.", Value: float64(t.counts.commits.Load())},
		{Name: flow.GaugeTransactionsFailed, Help: "Transactions that failed; their messages are handled again.", Value: float64(t.counts.failed.Load())},
		{Name: flow.GaugeRestores, Help: "Lanes whose state was restored.", Value: float64(t.counts.lanes.Load())},
		{Name: flow.GaugeRestoreSeconds, Help: "Time that restoring lanes took in all, in seconds.", Value: time.Duration(t.counts.restoring.Load()).Seconds()},
		{Name: flow.GaugeStoreBytes, Help: "Size of the copies of the state on disk, in bytes.", Value: float64(t.cache.Size())},
	}
	lags := make(map[consumer]int64)
	for lane := range t.owned {
		if n := t.lease(lane); n != nil {
			n.lags(lags)
		}
	}
	for who, lag := range lags {
		gauges = append(gauges, flow.Gauge{
			Name: flow.GaugeLag, Help: "Upper bound of how many messages a group is behind the end of a topic, in the lanes of this process.",
			Labels: map[string]string{"group": who.Group, "topic": who.Topic}, Value: float64(lag),
		})
	}
	return gauges
}

// lags adds to by how far the runners of n are behind the ends of their topics.
func (n *lease) lags(by map[consumer]int64) {
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for _, c := range n.allCursors() {
		if src := c.source(); c.seat.Runner != nil && src != nil {
			by[c.who] += max(src.end()-n.position(c.who), 0)
		}
	}
}

const (
	// recent is how long a failure keeps the Transport from being ready if it does not occur
	// again. It is longer than any retry interval.
	recent = 15 * time.Second
	// logAgain is how often a lasting failure is logged.
	logAgain = time.Minute
)

// outage is what currently keeps the Transport from working. Its begin and its end are logged,
// not every failure in between.
type outage struct {
	mu sync.Mutex
	// waits is what the Transport waits for, mostly brokers that do not answer; since is when
	// that began.
	waits error
	since time.Time
	// answers is when the brokers began to answer; zero while they do not.
	answers time.Time
	// missing are the rights that the brokers deny; deniedAt is when that began.
	missing  string
	deniedAt time.Time
	// troubles are the operations that failed and are retried, by name.
	troubles map[string]*trouble
	// begun is when the outage was first logged, logged when one of the troubles was; zero if there is none.
	begun, logged time.Time
}

type trouble struct {
	reason              error
	first, last, logged time.Time
}

// outage records that an operation failed and will be retried.
func (t *Transport) outage(what string, err error) {
	o, now := &t.away, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.troubles == nil {
		o.troubles = make(map[string]*trouble)
	}
	tr := o.troubles[what]
	if tr == nil || now.Sub(tr.last) > recent {
		tr = &trouble{first: now}
		o.troubles[what] = tr
	}
	tr.last, tr.reason = now, fmt.Errorf("%s: %s", what, t.cfg.cause(err))
	// One failure often causes others: what fails soon after a line of the log gets none.
	if o.waits != nil || o.missing != "" || now.Sub(tr.logged) < logAgain || now.Sub(o.logged) < recent {
		t.log.Debug("kafka: "+what, "error", err)
		return
	}
	tr.logged, o.logged = now, now
	if o.begun.IsZero() {
		o.begun = now
	}
	t.log.Warn("kafka: "+what, "error", t.cfg.cause(err))
}

// waiting records what the Transport waits for; nil ends the wait.
func (t *Transport) waiting(reason error) {
	o := &t.away
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits == nil {
		o.since = time.Now()
	}
	o.waits, o.answers = reason, time.Time{}
}

// answered records that the brokers answer. If they did not answer before, that explains all
// troubles, and they are over. Otherwise those are over that did not occur again recently.
func (t *Transport) answered() {
	o, now := &t.away, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for what, tr := range o.troubles {
		if o.waits != nil || now.Sub(tr.last) > recent {
			delete(o.troubles, what)
		}
	}
	o.waits = nil
	if o.answers.IsZero() {
		o.answers = now
	}
	if !o.begun.IsZero() && len(o.troubles) == 0 {
		t.log.Info("kafka: working again", "after", now.Sub(o.begun).Round(100*time.Millisecond))
		o.begun, o.logged = time.Time{}, time.Time{}
	}
}

// answering returns how long the brokers have been answering; 0 while they do not.
func (o *outage) answering(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.answers.IsZero() {
		return 0
	}
	return now.Sub(o.answers)
}

// present returns why the Transport does not work and since when; nil if it does.
func (o *outage) present(now time.Time) (since time.Time, reason error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits != nil {
		return o.since, o.waits
	}
	if o.missing != "" {
		return o.deniedAt, fmt.Errorf("rights are missing: allow %s", o.missing)
	}
	for _, tr := range o.troubles {
		if now.Sub(tr.last) <= recent && (reason == nil || tr.first.Before(since)) {
			reason, since = tr.reason, tr.first
		}
	}
	return since, reason
}

// patiently retries f while it fails for brokers that are not available yet: one that has just
// restarted leads no partition for a moment. When ctx is done it returns the cause.
func patiently[T any](ctx context.Context, t *Transport, f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if err == nil || !client.Away(err) {
			return v, err
		}
		t.outage("the brokers are not available yet; retrying", err)
		if err := client.Sleep(ctx, probeEvery); err != nil {
			return v, err
		}
	}
}

// probeEvery is how long patiently rests between two attempts.
const probeEvery = 500 * time.Millisecond

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
	return c.cluster().Cause(err)
}
