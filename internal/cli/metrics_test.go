package cli

import (
	"github.com/vokter/vokter/pipeline/flow"

	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type figures []flow.Gauge

func (f figures) Gauges() []flow.Gauge { return f }

func TestMetrics(t *testing.T) {
	w := httptest.NewRecorder()
	metrics(figures{
		{Name: "vokter_ready", Help: "Whether it is.", Value: 1},
		{Name: "vokter_things_total", Help: "Things.", Value: 7},
		{Name: "vokter_lag", Help: "Lag.", Labels: map[string]string{"topic": `a"b`, "group": "index"}, Value: 2.5},
		{Name: "vokter_lag", Help: "Lag.", Labels: map[string]string{"topic": "c", "group": "diff"}},
	}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
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
`
	if w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("got %d\n%s\nwant\n%s", w.Code, w.Body, want)
	}
}

// Figures that contradict each other are told as an error, and not in part.
func TestMetricsTwice(t *testing.T) {
	w := httptest.NewRecorder()
	metrics(figures{{Name: "vokter_ready", Help: "a"}, {Name: "vokter_ready", Help: "a"}}).
		ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// scrape returns the names of the metrics at addr.
func scrape(t *testing.T, addr string) []string {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %v %s", resp.Status, err, b)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) `).FindAllStringSubmatch(string(b), -1) {
		names = append(names, m[1])
	}
	return names
}

// documented returns the names of the metrics that docs/metrics.md lists in its first table,
// and with kafka also in its second.
func documented(t *testing.T, kafka bool) []string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _, found := strings.Cut(string(doc), "With `transport: kafka`")
	if !found {
		t.Fatal("docs/metrics.md says nothing of Kafka")
	}
	if kafka {
		text = string(doc)
	}
	var names []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(vokter_\\w+)` ").FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

func TestMetricsAreDocumented(t *testing.T) {
	dir := t.TempDir()
	run := start(t, "run", "-c", file(t, "c.yaml", fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\n", dir)))
	if got, want := scrape(t, run.listening(t, dir)), documented(t, false); !slices.Equal(got, want) {
		t.Errorf("got %q, want those of docs/metrics.md: %q", got, want)
	}
}
