package kafka

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
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
	if !t.joined {
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
	joined, n := t.joined, len(t.assigned)
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
