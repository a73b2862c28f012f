// Package metrics shows the figures of a Router to Prometheus. A program that embeds Vokter
// registers them with its own:
//
//	prometheus.MustRegister(metrics.Collector(router.Gauges))
package metrics

import (
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vokter/vokter/pipeline/flow"
)

// Collector returns a collector of the figures that gauges returns, such as the method Gauges of a
// vokter.Router. It calls gauges at each scrape, from several goroutines at a time.
func Collector(gauges func() []flow.Gauge) prometheus.Collector { return collector(gauges) }

type collector func() []flow.Gauge

// Describe sends nothing, because the set of metrics depends on the transport.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the current values.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, g := range c() {
		names := slices.Sorted(maps.Keys(g.Labels))
		values := make([]string, 0, len(names))
		for _, n := range names {
			values = append(values, g.Labels[n])
		}
		desc := prometheus.NewDesc(g.Name, g.Help, names, nil)
		m, err := metric(desc, g, values)
		if err != nil {
			m = prometheus.NewInvalidMetric(desc, err)
		}
		out <- m
	}
}

func metric(desc *prometheus.Desc, g flow.Gauge, labels []string) (prometheus.Metric, error) {
	if h := g.Histogram; h != nil {
		return prometheus.NewConstHistogram(desc, h.Count, g.Value, h.Buckets, labels...)
	}
	kind := prometheus.GaugeValue
	if strings.HasSuffix(g.Name, "_total") {
		kind = prometheus.CounterValue
	}
	return prometheus.NewConstMetric(desc, kind, g.Value, labels...)
}
