package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

// mostlyStaticPages is a Fetcher of many small pages that never change, and of one of 80 KB of which one percent
// of the words change with each fetch.
type mostlyStaticPages struct{ editedPages }

const changingPage = "bench://host/changing"

func (s *mostlyStaticPages) Fetch(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	if r.URL == changingPage {
		return s.editedPages.Fetch(ctx, r)
	}
	return pipeline.Response{
		URL: r.URL, Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
		Body: io.NopCloser(bytes.NewReader([]byte("a page of few words, which is found at " + r.URL))),
	}, nil
}

// BenchmarkHistory measures Versions and Diff of a page of 80 KB with ten versions, in a data
// directory of 100,000 documents.
func BenchmarkHistory(b *testing.B) {
	documents := 100_000
	if testing.Short() {
		documents = 1000
	}
	s := &mostlyStaticPages{editedPages{words: make(map[string][]string)}}
	cfg := vokter.Config{
		Dir: b.TempDir(), MinFree: 1, Fetchers: []pipeline.Fetcher{s}, Every: &everyTime, Checks: 1,
		Fetch: vokter.FetchConfig{Concurrency: 8, Rate: 1e9},
		Sinks: map[string]pipeline.Sink{"none": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil })},
	}
	for i := range documents {
		url := fmt.Sprintf("bench://host%d/page%d", i%100, i)
		if i == 0 {
			url = changingPage
		}
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{URL: url, Keywords: []string{"word1", "word2"}, Sinks: []string{"none"}})
	}
	run := func(cfg vokter.Config) {
		r, err := vokter.New(cfg)
		if err == nil {
			err = r.Run(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	run(cfg)
	cfg.Only, cfg.Subscriptions = []string{changingPage}, cfg.Subscriptions[:1]
	cfg.Checks = 9
	run(cfg)
	cfg.Mode, cfg.Checks = vokter.ModeCommands, 0
	r, err := vokter.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(b.Context()) }()
	<-r.Running()
	b.Run("versions", func(b *testing.B) {
		for range b.N {
			if h, err := r.Versions(b.Context(), changingPage, inspect.DocumentFilter{}); err != nil || len(h.Versions) != 10 {
				b.Fatalf("got %d versions, %v", len(h.Versions), err)
			}
		}
	})
	b.Run("diff", func(b *testing.B) {
		for range b.N {
			if d, err := r.Diff(b.Context(), changingPage, inspect.DiffFilter{}); err != nil || d.Size.Added == 0 {
				b.Fatalf("got %+v, %v", d.Size, err)
			}
		}
	})
	b.Run("occurrences", func(b *testing.B) {
		for range b.N {
			if _, err := r.Occurrences(b.Context(), changingPage, "word1", inspect.OccurrenceFilter{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	r.Finish()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
