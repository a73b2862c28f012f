package inspect_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestMeter counts observations, among them of sinks and classes that are not known.
func TestMeter(t *testing.T) {
	m := &inspect.Meter{Sinks: func() []string { return []string{"box"} }}
	for _, o := range []flow.Observation{
		{Kind: flow.KindFailed, Class: pipeline.FailTimeout}, {Kind: flow.KindFailed, Class: "a class of https://example.com/"},
		{Kind: flow.KindDelivered, Sink: "box", After: 300 * time.Millisecond}, {Kind: flow.KindDelivered, Sink: "box", After: time.Hour},
		{Kind: flow.KindDelivered, Sink: "box"}, {Kind: flow.KindDelivered, Sink: "https://example.com/hook", After: 48 * time.Hour},
		{Kind: flow.KindDead, Sink: "box"}, {Kind: flow.KindDropped, Sink: "gone"},
		{Kind: flow.KindAttempt, Sink: "box", Class: failure.ClassLimited.String()}, {Kind: flow.KindAttempt, Sink: "box", Class: failure.ClassLimited.String()},
	} {
		m.Note(o)
	}
	got := make(map[string]float64)
	var latency flow.Gauge
	for _, g := range m.Gauges() {
		if g.Histogram != nil {
			latency = g
			continue
		}
		got[g.Name+" "+g.Labels["sink"]+" "+g.Labels["outcome"]+g.Labels["class"]] = g.Value
	}
	for name, want := range map[string]float64{
		"vokter_checks_failed_total  timeout": 1, "vokter_checks_failed_total  dns": 0, "vokter_checks_failed_total  other": 1,
		"vokter_deliveries_total box delivered": 3, "vokter_deliveries_total box dead_letter": 1, "vokter_deliveries_total box cancelled": 0,
		"vokter_deliveries_total other delivered": 1, "vokter_deliveries_total other cancelled": 1,
		"vokter_delivery_failures_total box limited": 2, "vokter_delivery_failures_total box retry": 0, "vokter_delivery_failures_total other retry": 0,
	} {
		if v, known := got[name]; !known || v != want {
			t.Errorf("%s: got %v (%v), want %v", name, v, known, want)
		}
		delete(got, name)
	}
	for name, v := range got {
		if v != 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
	h := latency.Histogram
	if h == nil || h.Count != 3 || h.Buckets[0.25] != 0 || h.Buckets[0.5] != 1 || h.Buckets[7200] != 2 || h.Buckets[86400] != 2 || latency.Value != (49*time.Hour).Seconds()+0.3 {
		t.Errorf("latencies: got %+v of %+v", h, latency)
	}
}

// TestTallyOfManyPages bounds the memory of a page that is checked: there may be a million.
func TestTallyOfManyPages(t *testing.T) {
	const pages, limit = 1 << 14, 300
	tally, names := inspect.NewTally(), make([]string, pages)
	for i := range names {
		names[i] = fmt.Sprint("https://example.com/", i)
	}
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	for _, name := range names {
		for _, kind := range []string{flow.KindCheck, flow.KindVersion, flow.KindUnchanged} {
			tally.Note(flow.Observation{Kind: kind, Page: name, Document: "0123456789ABCDEFGHIJKLMNOP"})
		}
	}
	if each := (int64(live()) - int64(before)) / pages; each > limit {
		t.Errorf("a page takes %d bytes, want at most %d", each, limit)
	}
	if got := len(tally.Summary().Documents); got != pages {
		t.Errorf("%d documents, want %d", got, pages)
	}
	runtime.KeepAlive(names)
}
