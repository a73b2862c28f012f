package kafka

import (
	"github.com/vokter/vokter/pipeline/flow"
)

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
		if n := t.tenure(lane); n != nil {
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
func (n *tenure) lags(by map[consumer]int64) {
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for who, r := range n.runners {
		if src := r.src.Load(); src != nil {
			by[who] += max(src.end()-n.position(who), 0)
		}
	}
}
