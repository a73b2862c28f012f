package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

// The metrics of Watermill count the messages of each stage on the way of a change.
func TestMetricsCountTheMessagesOfEachStage(t *testing.T) {
	var n atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, []string{"<p>Zeus. In stock.</p>", "<p>Zeus. Out of stock.</p>"}[min(n.Add(1), 2)-1])
	}))
	defer site.Close()
	delivered := 0
	var every time.Duration
	registry := prometheus.NewRegistry()
	err := watch(t.Context(), registry, vokter.Config{
		Sinks: map[string]pipeline.Sink{"count": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error {
			delivered++
			return nil
		})},
		Subscriptions: []pipeline.Subscription{{URL: site.URL, Keywords: []string{"out of stock"}, Sinks: []string{"count"}}},
		Fetch:         vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		Checks:        2, Every: &every,
	})
	if err != nil {
		t.Fatal(err)
	}
	if delivered != 1 {
		t.Errorf("%d notifications were delivered, want 1", delivered)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	handled := make(map[string]uint64)
	for _, f := range families {
		if f.GetName() != "handler_execution_time_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			if label(m, "success") != "true" {
				t.Errorf("handler %s failed", label(m, "handler_name"))
			}
			handled[label(m, "handler_name")] += m.GetHistogram().GetSampleCount()
		}
	}
	t.Logf("handled: %v", handled)
	for handler, least := range map[string]uint64{
		"vokter.fetch.requests":         2, // the checks
		"vokter.index.documents":        3, // what was subscribed, and what the checks found
		"vokter.diff.snapshots":         1,
		"vokter.match.subscriptions":    1,
		"vokter.match.changes":          1,
		"vokter.delivery.notifications": 1,
	} {
		if handled[handler] < least {
			t.Errorf("%s handled %d messages, want %d or more", handler, handled[handler], least)
		}
	}
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
