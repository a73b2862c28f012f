package inspect

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// latencies are the upper bounds of the histogram of latencies, in seconds.
var latencies = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400}

// failures are the classes of failed checks that always have a figure, so that the first failure is
// seen as an increase.
var failures = []string{
	pipeline.FailDNS, pipeline.FailRefused, pipeline.FailTLS, pipeline.FailStatus, pipeline.FailTimeout, pipeline.FailAddress, pipeline.FailNetwork,
	pipeline.FailRedirect, pipeline.FailType, pipeline.FailUnreadable, pipeline.FailTooLarge, pipeline.FailBusy, pipeline.FailSelectorGone,
	pipeline.FailMissing, pipeline.FailEmpty, pipeline.FailReplaced, pipeline.FailURL, pipeline.FailRobots, pipeline.FailLogin,
}

// others is the label of everything without a label of its own.
const others = "other"

// Meter counts observations by class and by sink, and measures how long changes take to be
// delivered. Its figures are for monitoring. Their labels are bounded, and they are lost with the
// process. It is safe for concurrent use.
type Meter struct {
	// Sinks returns the names of the sinks that have figures of their own. All others, such as
	// those of REST clients, share the label "other". Set it before the first call.
	Sinks func() []string

	mu     sync.Mutex
	failed map[string]int
	sinks  map[string]*sinkCounts
	// buckets counts the latencies up to each of latencies, without those of smaller bounds.
	buckets []uint64
	latency float64
	timed   uint64
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
	sink := others
	if o.Sink != "" && slices.Contains(m.Sinks(), o.Sink) {
		sink = o.Sink
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.Kind == flow.KindFailed {
		if m.failed == nil {
			m.failed = make(map[string]int)
		}
		if slices.Contains(failures, o.Class) {
			m.failed[o.Class]++
		} else {
			m.failed[others]++ // fetchers of other authors may have any class
		}
		return
	}
	c := m.sink(sink)
	switch o.Kind {
	case flow.KindDelivered:
		c.delivered++
		m.measure(o.After)
	case flow.KindDead:
		c.dead++
	case flow.KindDropped:
		c.dropped++
	case flow.KindAttempt:
		c.attempts[o.Class]++
	}
}

// sink returns the counts of a sink. m.mu is held.
func (m *Meter) sink(name string) *sinkCounts {
	if m.sinks == nil {
		m.sinks = make(map[string]*sinkCounts)
	}
	if m.sinks[name] == nil {
		m.sinks[name] = &sinkCounts{attempts: make(map[string]int)}
	}
	return m.sinks[name]
}

// measure adds a latency; zero means that there is none. m.mu is held.
func (m *Meter) measure(d time.Duration) {
	if d <= 0 {
		return
	}
	if m.buckets == nil {
		m.buckets = make([]uint64, len(latencies))
	}
	m.timed++
	m.latency += d.Seconds()
	if i, _ := slices.BinarySearch(latencies, d.Seconds()); i < len(latencies) {
		m.buckets[i]++
	}
}

// Gauges returns the figures.
func (m *Meter) Gauges() []flow.Gauge {
	names := append(m.Sinks(), others)
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []flow.Gauge
	for _, class := range append(slices.Clone(failures), others) {
		all = append(all, labelled("vokter_checks_failed_total", "Checks that failed, by the class of the failure.", m.failed[class], "class", class))
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		c := m.sink(name)
		for _, o := range []struct {
			outcome string
			n       int
		}{{"delivered", c.delivered}, {"dead_letter", c.dead}, {"cancelled", c.dropped}} {
			all = append(all, labelled("vokter_deliveries_total", "Notifications whose delivery ended, by sink and outcome.", o.n, "sink", name, "outcome", o.outcome))
		}
		for _, class := range attemptClasses(c) {
			all = append(all, labelled("vokter_delivery_failures_total", "Attempts to deliver that failed, by sink and class; most are retried.", c.attempts[class], "sink", name, "class", class))
		}
	}
	h := &flow.Histogram{Count: m.timed, Buckets: make(map[float64]uint64, len(latencies))}
	sum := uint64(0)
	for i, bound := range latencies {
		if m.buckets != nil {
			sum += m.buckets[i]
		}
		h.Buckets[bound] = sum
	}
	return append(all, flow.Gauge{
		Name: "vokter_delivery_latency_seconds", Help: "Time from the check that saw a change to the delivery of its notification, without digests.",
		Value: m.latency, Histogram: h,
	})
}

// attemptClasses returns the classes of the failed attempts of c, and "retry", the usual one.
func attemptClasses(c *sinkCounts) []string {
	classes := slices.Collect(maps.Keys(c.attempts))
	if !slices.Contains(classes, "retry") {
		classes = append(classes, "retry")
	}
	slices.Sort(classes)
	return classes
}

// labelled returns a counter with labels, given as pairs of name and value.
func labelled(name, help string, n int, pairs ...string) flow.Gauge {
	g := flow.Gauge{Name: name, Help: help, Value: float64(n), Labels: make(map[string]string, len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		g.Labels[pairs[i]] = pairs[i+1]
	}
	return g
}
