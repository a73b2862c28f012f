package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// How the brokers are watched.
const (
	lookEvery   = 2 * time.Second
	topicsEvery = time.Minute
	// slowCommit is after how long a transaction that has not ended is told.
	slowCommit = 10 * time.Second
)

// counts are figures for those who watch over the process.
type counts struct {
	commits, failed, restored atomic.Uint64
}

// Ready returns nil while messages of all lanes that this process was given are handled, and
// otherwise what it waits for. It returns at once.
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
	defer t.mu.Unlock()
	if t.member == "" {
		return fmt.Errorf("kafka: waiting for lanes in the consumer group %s", t.cfg.Group)
	}
	var left []string
	for lane := range t.assigned {
		if n := t.lease(lane); n != nil {
			if d := n.hanging(); d > slowCommit {
				return fmt.Errorf("kafka: a transaction of lane %d has not ended for %v", lane, d.Round(time.Second))
			}
			continue
		}
		if r := t.restores[lane]; r != nil {
			left = append(left, fmt.Sprintf("lane %d: %d %%", lane, r.percent()))
		} else {
			left = append(left, fmt.Sprintf("lane %d", lane))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("kafka: restoring the state of %d of %d lanes (%s)", len(left), len(t.assigned), strings.Join(left[:min(len(left), 4)], ", "))
	}
	return nil
}

// Room returns nil while the disk of the copies has room, otherwise a channel that is closed
// when it has again.
func (t *Transport) Room() <-chan struct{} {
	if !t.ready.Load() {
		return nil
	}
	return t.room.Again()
}

// Activity is a counter that grows with every publication, post and commit.
func (t *Transport) Activity() uint64 { return t.activity.Load() }

// Idle reports whether this process has nothing to do: it was given lanes, or none, and all
// that it knows to stand in them is handled, nothing is in flight or posted, and no wake is
// due. It is false where that changed while it looked.
func (t *Transport) Idle() bool {
	before := t.activity.Load()
	t.mu.Lock()
	joined, n := t.member != "", len(t.assigned)
	t.mu.Unlock()
	t.hintMu.Lock()
	hints := len(t.hints)
	t.hintMu.Unlock()
	if !joined || hints > 0 || t.sending.Load() > 0 || t.posted() {
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

// idle reports whether nothing is left to do in n's lane.
func (n *lease) idle() bool {
	n.mu.RLock()
	busy := n.flight != nil || n.open.urgent
	n.mu.RUnlock()
	if busy {
		return false
	}
	now := n.t.now()
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for _, r := range n.runners {
		if !r.idle(now) {
			return false
		}
	}
	for _, who := range n.t.declared() {
		if n.runners[who] == nil && n.position(who) < n.t.head(who.topic, n.lane) {
			return false
		}
	}
	return true
}

// position is the next offset that who is to handle; 0 where it handled nothing yet.
func (n *lease) position(who consumer) int64 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.positions[who]
}

// declared lists the consumers that were declared.
func (t *Transport) declared() []consumer {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []consumer
	for name, topic := range t.topics {
		for _, g := range topic.Groups {
			all = append(all, consumer{g, name})
		}
	}
	return all
}

// Gauges are figures about this process's part.
func (t *Transport) Gauges() []flow.Gauge {
	if !t.ready.Load() {
		return nil
	}
	t.mu.Lock()
	assigned, restoring := len(t.assigned), 0
	for lane := range t.assigned {
		if !t.works(lane) {
			restoring++
		}
	}
	t.mu.Unlock()
	gauges := []flow.Gauge{
		{Name: flow.GaugeLanes, Help: "Lanes, in all processes together.", Value: float64(t.lanes)},
		{Name: flow.GaugeLanesOwned, Help: "Lanes that this process owns.", Value: float64(assigned)},
		{Name: flow.GaugeLanesRestoring, Help: "Lanes that this process owns and whose state it still reads.", Value: float64(restoring)},
		{Name: flow.GaugeRestored, Help: "Records of state that were read to restore lanes.", Value: float64(t.counts.restored.Load())},
		{Name: flow.GaugeTransactions, Help: "Transactions that were committed.", Value: float64(t.counts.commits.Load())},
		{Name: flow.GaugeTransactionsFailed, Help: "Transactions that were given up; what was in them is handled again.", Value: float64(t.counts.failed.Load())},
	}
	lags := make(map[consumer]int64)
	for lane := range t.owned {
		if n := t.lease(lane); n != nil {
			n.lags(lags)
		}
	}
	for who, lag := range lags {
		gauges = append(gauges, flow.Gauge{
			Name: flow.GaugeLag, Help: "How far a group is behind the end of a topic at most, in the lanes of this process.",
			Labels: map[string]string{"group": who.group, "topic": who.topic}, Value: float64(lag),
		})
	}
	return gauges
}

// lags adds how far n's runners are behind the ends of their topics.
func (n *lease) lags(by map[consumer]int64) {
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for who, r := range n.runners {
		if src := r.src.Load(); src != nil {
			by[who] += max(src.end()-n.position(who), 0)
		}
	}
}

const (
	// recent is for how long something that failed keeps the Transport from being ready, if it
	// does not fail again: longer than it takes to be tried again.
	recent = 15 * time.Second
	// tellAgain is after how long what goes on failing is told again.
	tellAgain = time.Minute
)

// outage is what keeps the Transport from going on. It is told when it begins and ends, not
// each time that it shows.
type outage struct {
	mu sync.Mutex
	// waits is what is waited for, since then: brokers that do not answer, mostly.
	waits error
	since time.Time
	// answers is since when brokers answer; zero while they do not, and before they were asked.
	answers time.Time
	// missing are the rights that the brokers do not give, since deniedAt.
	missing  string
	deniedAt time.Time
	// troubles are what failed and will be tried again, by what it is.
	troubles map[string]*trouble
	// begun is when something was told that is not over; zero: nothing was.
	begun time.Time
}

type trouble struct {
	reason            error
	first, last, told time.Time
}

// outage notes that something failed that will be tried again.
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
	if o.waits != nil || o.missing != "" || now.Sub(tr.told) < tellAgain || o.told(now) {
		t.log.Debug("kafka: "+what, "error", err)
		return
	}
	tr.told = now
	if o.begun.IsZero() {
		o.begun = now
	}
	t.log.Warn("kafka: "+what, "error", t.cfg.cause(err))
}

// told reports whether another trouble was told just now: one that goes wrong makes others.
// o.mu is held.
func (o *outage) told(now time.Time) bool {
	for _, tr := range o.troubles {
		if now.Sub(tr.told) < recent {
			return true
		}
	}
	return false
}

// waiting notes what is waited for; nil ends it.
func (t *Transport) waiting(reason error) {
	o := &t.away
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits == nil {
		o.since = time.Now()
	}
	o.waits, o.answers = reason, time.Time{}
}

// answered notes that the brokers answer. If they did not, everything that failed did so for
// that; otherwise what did not fail again is over.
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
		t.log.Info("kafka: going on", "after", now.Sub(o.begun).Round(100*time.Millisecond))
		o.begun = time.Time{}
	}
}

// answering is for how long brokers answer; 0 where they do not.
func (o *outage) answering(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.answers.IsZero() {
		return 0
	}
	return now.Sub(o.answers)
}

// present returns since when the Transport does not go on, and why; nil where it does.
func (o *outage) present(now time.Time) (since time.Time, reason error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits != nil {
		return o.since, o.waits
	}
	if err := o.denied(); err != nil {
		return o.deniedAt, err
	}
	for _, tr := range o.troubles {
		if now.Sub(tr.last) <= recent && (reason == nil || tr.first.Before(since)) {
			reason, since = tr.reason, tr.first
		}
	}
	return since, reason
}

// denied says which rights are missing; nil where there are none. o.mu is held.
func (o *outage) denied() error {
	if o.missing == "" {
		return nil
	}
	return fmt.Errorf("rights are missing: allow %s", o.missing)
}

// patiently returns what f returns once the brokers are there for it: one that has just come
// back leads no partition for a moment. It tries until ctx is done, whose cause it then
// returns.
func patiently[T any](ctx context.Context, t *Transport, f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if err == nil || !client.Away(err) {
			return v, err
		}
		t.outage("the brokers do not serve yet; it is tried again", err)
		select {
		case <-ctx.Done():
			return v, context.Cause(ctx)
		case <-time.After(probeEvery):
		}
	}
}

// probeEvery is how long patiently rests between two attempts.
const probeEvery = 500 * time.Millisecond

// cause returns the reason within err in words.
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
