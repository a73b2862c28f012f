package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/local"
)

// editedPages is a Fetcher whose pages differ from each other, and of each of which one
// percent of the words change when it is fetched again.
type editedPages struct {
	mu      sync.Mutex
	fetches uint64
	words   map[string][]string
}

func (g *editedPages) Schemes() []string { return []string{"bench"} }

func (g *editedPages) Fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fetches++
	words, ok := g.words[r.URL]
	if ok {
		words = edited(words, g.fetches)
	} else {
		words = article(g.fetches)
	}
	g.words[r.URL] = words
	return pipeline.Response{
		URL: r.URL, Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, Body: io.NopCloser(bytes.NewReader(page(words))),
	}, nil
}

// BenchmarkDisk measures what a page of 80 KB takes in the store: one that never changed
// (B/page), and each version more of it (B/version); packed by the store, and with nothing
// in it that is out of date.
func BenchmarkDisk(b *testing.B) {
	const pages, versions = 40, 5
	for range b.N {
		dir := b.TempDir()
		g := &editedPages{words: make(map[string][]string)}
		cfg := vokter.Config{
			Dir: dir, MinFree: 1, Fetchers: []pipeline.Fetcher{g}, Every: &everyTime,
			Fetch: vokter.FetchConfig{Concurrency: 8, Rate: 1e9},
			Sinks: map[string]pipeline.Sink{"none": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil })},
		}
		for i := range pages {
			cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{
				URL: fmt.Sprintf("bench://host/%d", i), Keywords: []string{"nothing of this"}, Sinks: []string{"none"},
			})
		}
		cfg.Checks = 1
		runOnce(b, cfg)
		idle := stored(b, dir)
		cfg.Checks = versions
		runOnce(b, cfg)
		b.ReportMetric(float64(idle)/pages, "B/page")
		b.ReportMetric(float64(stored(b, dir)-idle)/(pages*versions), "B/version")
	}
}

// stored returns how many bytes the tables of the store in dir take once it is started
// anew and compacted.
func stored(b *testing.B, dir string) int64 {
	b.Helper()
	t, err := local.Open(local.Config{Dir: dir}) // what was consumed is trimmed
	if err != nil {
		b.Fatal(err)
	}
	if err := t.Close(); err != nil {
		b.Fatal(err)
	}
	db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatTableFormatV6, Logger: quietLogger{}})
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Compact(b.Context(), []byte{0}, []byte{0xff}, true); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil {
		b.Fatal(err)
	}
	var n int64
	for _, name := range tables {
		info, err := os.Stat(name)
		if err != nil {
			b.Fatal(err)
		}
		n += info.Size()
	}
	return n
}
