package cli

import (
	"github.com/vokter/vokter/pipeline/flow"

	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics answers with what r tells of itself, in the text format of Prometheus.
func metrics(r interface{ Gauges() []flow.Gauge }) http.Handler {
	all := prometheus.NewRegistry()
	all.MustRegister(collector(r.Gauges))
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}

// collector collects what it returns.
type collector func() []flow.Gauge

var _ prometheus.Collector = collector(nil)

// Describe describes nothing: which figures there are depends on the transport.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the figures as they are now.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, g := range c() {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(g.Name, "_total") {
			kind = prometheus.CounterValue
		}
		names := slices.Sorted(maps.Keys(g.Labels))
		values := make([]string, 0, len(names))
		for _, n := range names {
			values = append(values, g.Labels[n])
		}
		desc := prometheus.NewDesc(g.Name, g.Help, names, nil)
		m, err := prometheus.NewConstMetric(desc, kind, g.Value, values...)
		if err != nil {
			m = prometheus.NewInvalidMetric(desc, err)
		}
		out <- m
	}
}
