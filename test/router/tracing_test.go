package router_test

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

// TestTrace: the check that saw a change and the delivery of its notification are spans of one
// trace, and each span between them has its cause as its parent.
func TestTrace(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	page, box := "https://example.com/", newMailbox()
	_, stop := startRouter(t, vokter.Config{
		Sinks: map[string]pipeline.Sink{"box": box}, Every: &zeroInterval, TracerProvider: provider,
		Fetchers:      []pipeline.Fetcher{&pagesFetcher{bodies: []string{"<p>Zeus</p>", "<p>Zeus and Argus</p>"}}},
		Fetch:         vokter.FetchConfig{Rate: 1000},
		Subscriptions: []pipeline.Subscription{{URL: page, Keywords: []string{"Argus"}, Sinks: []string{"box"}}},
	})
	<-box.arrived
	stop()
	by := make(map[trace.SpanID]tracetest.SpanStub)
	var delivery tracetest.SpanStub
	for _, s := range spans.GetSpans() {
		by[s.SpanContext.SpanID()] = s
		if s.Name == "deliver" {
			delivery = s
		}
	}
	var names []string
	for s, known := delivery, true; known; s, known = by[s.Parent.SpanID()] {
		names = append(names, s.Name)
		if s.SpanContext.TraceID() != delivery.SpanContext.TraceID() {
			t.Errorf("%s is of another trace", s.Name)
		}
	}
	want := []string{"deliver", "match changes", "diff snapshots", "index documents", "check"}
	for i, name := range want {
		if i >= len(names) || names[i] != name {
			t.Fatalf("got %q, want them to begin with %q", names, want)
		}
	}
}
