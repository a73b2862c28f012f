package bench_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

var (
	startPages   = flag.Int("start.pages", 200, "pages in the store of BenchmarkStart")
	startClients = flag.Int("start.clients", 10, "subscriptions of each of its pages")
)

// library answers every fetch with the same page.
type library struct{}

func (library) Schemes() []string { return []string{"https"} }

func (library) Fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	body := fmt.Sprintf("<html><title>%s</title><p>Nothing is lost, and nobody is told twice. %s</p></html>", r.URL, strings.Repeat("More of it. ", 100))
	return pipeline.Response{
		URL: r.URL, Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// BenchmarkStart measures how long it takes from New until the Router is at work, over a
// store with many pages and subscriptions, and the memory that it holds then. The
// subscriptions were made one by one, or stand in the configuration that is applied again.
func BenchmarkStart(b *testing.B) {
	for _, origin := range []string{"api", "config"} {
		b.Run(origin, func(b *testing.B) { benchmarkStart(b, origin) })
	}
}

func benchmarkStart(b *testing.B, origin string) {
	cfg := vokter.Config{
		Dir: b.TempDir(), Fetchers: []pipeline.Fetcher{library{}}, Fetch: vokter.FetchConfig{Rate: 1e9, Concurrency: 64}, Origin: origin,
		Sinks: map[string]pipeline.Sink{"none": vokter.Listener{}}, Checks: 1, Every: &everyTime,
	}
	for p := range *startPages {
		for c := range *startClients {
			cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{
				URL: fmt.Sprintf("https://host-%d.example.com/page/%d", p%1000, p), Client: fmt.Sprintf("client %d", c),
				Keywords: []string{"lost", "personal data"}, Interval: pipeline.Every(24 * time.Hour), Sinks: []string{"none"},
			})
		}
	}
	if origin == "api" {
		cfg.Origin = "before" // no list of today's takes them over
	}
	runOnce(b, cfg)
	cfg.Checks, cfg.Every = 0, nil
	if origin == "api" {
		cfg.Origin, cfg.Subscriptions = "config", nil
	}
	var heap uint64
	b.ResetTimer()
	for range b.N {
		start(b, cfg, func(r *vokter.Router) {
			<-r.Running()
			b.StopTimer()
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heap = m.HeapInuse
		})
		b.StartTimer()
	}
	b.ReportMetric(float64(heap)/1e6, "MB-heap")
	b.ReportMetric(float64(*startPages**startClients), "subscriptions")
}

// start runs cfg until during returns.
func start(b *testing.B, cfg vokter.Config, during func(r *vokter.Router)) {
	r, err := vokter.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	during(r)
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
