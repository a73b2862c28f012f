package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/vokter/vokter/inspect/metrics"
	"github.com/vokter/vokter/pipeline/flow"
)

// scrape returns what Prometheus gets of the figures.
func scrape(figures ...flow.Gauge) *httptest.ResponseRecorder {
	all := prometheus.NewRegistry()
	all.MustRegister(metrics.Collector(func() []flow.Gauge { return figures }))
	w := httptest.NewRecorder()
	promhttp.HandlerFor(all, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w
}

func TestCollector(t *testing.T) {
	w := scrape(
		flow.Gauge{Name: "vokter_ready", Help: "Whether it is.", Value: 1},
		flow.Gauge{Name: "vokter_things_total", Help: "Things.", Value: 7},
		flow.Gauge{Name: "vokter_lag", Help: "Lag.", Labels: map[string]string{"topic": `a"b`, "group": "index"}, Value: 2.5},
		flow.Gauge{Name: "vokter_lag", Help: "Lag.", Labels: map[string]string{"topic": "c", "group": "diff"}},
		flow.Gauge{Name: "vokter_wait_seconds", Help: "Waits.", Value: 3.5, Histogram: &flow.Histogram{Count: 3, Buckets: map[float64]uint64{0.5: 1, 2: 2}}},
	)
	want := `# HELP vokter_lag Lag.
# TYPE vokter_lag gauge
vokter_lag{group="diff",topic="c"} 0
vokter_lag{group="index",topic="a\"b"} 2.5
# HELP vokter_ready Whether it is.
# TYPE vokter_ready gauge
vokter_ready 1
# HELP vokter_things_total Things.
# TYPE vokter_things_total counter
vokter_things_total 7
# HELP vokter_wait_seconds Waits.
# TYPE vokter_wait_seconds histogram
vokter_wait_seconds_bucket{le="0.5"} 1
vokter_wait_seconds_bucket{le="2"} 2
vokter_wait_seconds_bucket{le="+Inf"} 3
vokter_wait_seconds_sum 3.5
vokter_wait_seconds_count 3
`
	if w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("got %d\n%s\nwant\n%s", w.Code, w.Body, want)
	}
}

// TestContradiction: figures that contradict each other give an error, not a part of them.
func TestContradiction(t *testing.T) {
	w := scrape(flow.Gauge{Name: "vokter_ready", Help: "a"}, flow.Gauge{Name: "vokter_ready", Help: "a"})
	if w.Code != http.StatusInternalServerError {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
