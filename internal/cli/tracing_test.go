package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestTraces runs the program with a receiver of OTLP.
func TestTraces(t *testing.T) {
	names := make(chan string, 1000)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var got collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(b, &got) != nil {
			t.Errorf("%s: %v, %d bytes that are no spans", r.URL, err, len(b))
			return
		}
		for _, resource := range got.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					names <- s.Name
				}
			}
		}
	}))
	t.Cleanup(receiver.Close)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Zeus") }))
	t.Cleanup(page.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	config := file(t, "c.yaml", fmt.Sprintf("sinks: {out: {stdout: {}}}\nsubscriptions: [{url: %q, keywords: [Zeus], sinks: [out]}]\n", page.URL))
	args := []string{"run", "-c", config, "--checks", "1", "--allow", loopback}
	runCLI(t, args...)
	close(names) // the program has sent its last spans
	var all []string
	for name := range names {
		all = append(all, name)
	}
	if !strings.Contains(strings.Join(all, ","), "check") {
		t.Errorf("got the spans %q, want a check among them", all)
	}

	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	expectExit(t, exitUsage, "only http/protobuf", args...)
}
