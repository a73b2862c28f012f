package inspect

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// latencyBounds are the upper bounds of the histogram of latencies, in seconds.
var latencyBounds = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400}

// failureClasses are the classes of failed checks that always have a figure, so that the first failure is
// seen as an increase.
var failureClasses = []string{
	pipeline.FailDNS, pipeline.FailRefused, pipeline.FailTLS, pipeline.FailStatus, pipeline.FailTimeout, pipeline.FailAddress, pipeline.FailNetwork,
	pipeline.FailRedirect, pipeline.FailType, pipeline.FailUnreadable, pipeline.FailTooLarge, pipeline.FailBusy, pipeline.FailSelectorGone,
	pipeline.FailMissing, pipeline.FailEmpty, pipeline.FailReplaced, pipeline.FailURL, pipeline.FailRobots, pipeline.FailLogin,
}

// otherLabel is the label of everything without a label of its own.
const otherLabel = "other"

// Meter counts observations by class and by sink, and measures how long changes take to be
// delivered. Its figures are for monitoring. Their labels are bounded, and they are lost with the
// process. It is safe for concurrent use.
type Meter struct {
	// Sinks returns the names of the sinks that have figures of their own. All others, such as
	// those of REST clients, share the label "other". Set it before the first call.
	Sinks func() []string

	mu           sync.Mutex
	failedChecks map[string]int
	sinks        map[string]*sinkCounts
	// latencyCounts counts the latencies up to each of latencyBounds, without those of smaller bounds.
	latencyCounts []uint64
	latencySum    float64
	latencyCount  uint64
}

// sinkCounts are the counts of one sink.
type sinkCounts struct {
	delivered, dead, dropped int
	// attempts counts the failed attempts, by class.
	attempts map[string]int
}

// Note counts one observation. It is a [flow.Observer].
func (m *Meter) Note(o flow.Observation) {
	switch o.Kind {
	case flow.KindFailed, flow.KindDelivered, flow.KindDead, flow.KindDropped, flow.KindAttempt:
	default:
		return
	}
	sink := otherLabel
	if o.Sink != "" && slices.Contains(m.Sinks(), o.Sink) {
		sink = o.Sink
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.Kind == flow.KindFailed {
		if m.failedChecks == nil {
			m.failedChecks = make(map[string]int)
		}
		if slices.Contains(failureClasses, o.Class) {
			m.failedChecks[o.Class]++
		} else {
			m.failedChecks[otherLabel]++ // fetchers of other authors may have any class
		}
		return
	}
	c := m.countsOf(sink)
	switch o.Kind {
	case flow.KindDelivered:
		c.delivered++
		m.addLatency(o.After)
	case flow.KindDead:
		c.dead++
	case flow.KindDropped:
		c.dropped++
	case flow.KindAttempt:
		c.attempts[o.Class]++
	}
}

// countsOf returns the counts of a sink. m.mu is held.
func (m *Meter) countsOf(name string) *sinkCounts {
	if m.sinks == nil {
		m.sinks = make(map[string]*sinkCounts)
	}
	if m.sinks[name] == nil {
		m.sinks[name] = &sinkCounts{attempts: make(map[string]int)}
	}
	return m.sinks[name]
}

// addLatency adds a latency; zero means that there is none. m.mu is held.
func (m *Meter) addLatency(d time.Duration) {
	if d <= 0 {
		return
	}
	if m.latencyCounts == nil {
		m.latencyCounts = make([]uint64, len(latencyBounds))
	}
	m.latencyCount++
	m.latencySum += d.Seconds()
	if i, _ := slices.BinarySearch(latencyBounds, d.Seconds()); i < len(latencyBounds) {
		m.latencyCounts[i]++
	}
}

// Gauges returns the figures.
func (m *Meter) Gauges() []flow.Gauge {
	names := append(m.Sinks(), otherLabel)
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []flow.Gauge
	for _, class := range append(slices.Clone(failureClasses), otherLabel) {
		all = append(all, labelledCounter("vokter_checks_failed_total", "Checks that failed, by the class of the failure.", m.failedChecks[class], "class", class))
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		c := m.countsOf(name)
		for _, o := range []struct {
			outcome string
			n       int
		}{{"delivered", c.delivered}, {"dead_letter", c.dead}, {"cancelled", c.dropped}} {
			all = append(all, labelledCounter("vokter_deliveries_total", "Notifications whose delivery ended, by sink and outcome.", o.n, "sink", name, "outcome", o.outcome))
		}
		for _, class := range failedAttemptClasses(c) {
			all = append(all, labelledCounter("vokter_delivery_failures_total", "Attempts to deliver that failed, by sink and class; most are retried.", c.attempts[class], "sink", name, "class", class))
		}
	}
	h := &flow.Histogram{Count: m.latencyCount, Buckets: make(map[float64]uint64, len(latencyBounds))}
	sum := uint64(0)
	for i, bound := range latencyBounds {
		if m.latencyCounts != nil {
			sum += m.latencyCounts[i]
		}
		h.Buckets[bound] = sum
	}
	return append(all, flow.Gauge{
		Name: "vokter_delivery_latency_seconds", Help: "Time from the check that saw a change to the delivery of its notification, without digests.",
		Value: m.latencySum, Histogram: h,
	})
}

// failedAttemptClasses returns the classes of the failed attempts of c, and "retry", the usual one.
func failedAttemptClasses(c *sinkCounts) []string {
	classes := slices.Collect(maps.Keys(c.attempts))
	if !slices.Contains(classes, "retry") {
		classes = append(classes, "retry")
	}
	slices.Sort(classes)
	return classes
}

// labelledCounter returns a counter with labels, given as pairs of name and value.
func labelledCounter(name, help string, n int, pairs ...string) flow.Gauge {
	g := flow.Gauge{Name: name, Help: help, Value: float64(n), Labels: make(map[string]string, len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		g.Labels[pairs[i]] = pairs[i+1]
	}
	return g
}
