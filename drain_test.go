package vokter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// ends runs cfg, while during is at work beside it, and fails if that takes longer than
// limit.
func ends(t *testing.T, cfg Config, limit time.Duration, during func(context.Context, *Router)) error {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("too long"))
	defer cancel()
	if during != nil {
		go func() {
			<-r.Running()
			during(ctx, r)
		}()
	}
	err = r.Run(ctx)
	if ctx.Err() != nil {
		t.Errorf("Run did not end within %v", limit)
	}
	return err
}

// TestChecksOfNothingEnd: a page that nobody asks to be kept is not waited for.
func TestChecksOfNothingEnd(t *testing.T) {
	cfg := Config{Documents: []Document{{URL: "https://example.com/"}}, Checks: 1}
	if err := ends(t, cfg, 5*time.Second, nil); err != nil {
		t.Error(err)
	}
}

// TestChecksEndThoughRequestsWait: pages that everybody left while their requests waited
// for the host's turn do not hold the end up.
func TestChecksEndThoughRequestsWait(t *testing.T) {
	s := newSite(t, "<p>Zeus.</p>")
	cfg := watching(s, newMailbox(), "", "argus")
	cfg.Fetch.Rate, cfg.Fetch.Concurrency = 0.01, 1
	for i := range 3 {
		sub := cfg.Subscriptions[0]
		sub.URL = fmt.Sprint(s.URL, "/", i)
		cfg.Subscriptions = append(cfg.Subscriptions, sub)
	}
	if err := ends(t, cfg, 5*time.Second, func(ctx context.Context, r *Router) {
		for _, sub := range cfg.Subscriptions {
			if err := r.Cancel(ctx, sub.URL, "default"); err != nil {
				t.Error(err)
			}
		}
	}); err != nil {
		t.Error(err)
	}
}

// TestDrainOfAFailingReceiverEnds: one that is retried every few seconds is given up
// after the horizon, not after days.
func TestDrainOfAFailingReceiverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		page := &pagesFetcher{bodies: []string{"<p>Zeus.</p>", "<p>Argus.</p>"}}
		err := ends(t, Config{
			Sinks: map[string]Sink{"box": SinkFunc(func(context.Context, Notification) error {
				attempts++
				return errors.New("not now")
			})},
			Subscriptions: []Subscription{{URL: "https://example.com/", Keywords: []string{"Argus"}, Sinks: []string{"box"}}},
			Fetchers:      []Fetcher{page}, Checks: 2, Every: &instantly,
			Delivery: DeliveryConfig{Retry: []time.Duration{5 * time.Second}},
		}, 5*time.Minute, nil)
		if err == nil || attempts < 5 {
			t.Errorf("err %v after %d attempts; want the loss to be told after 30 s of retries", err, attempts)
		}
	})
}

// pagesFetcher answers each fetch with the next body; the last one stays.
type pagesFetcher struct {
	bodies []string
	n      int
}

func (f *pagesFetcher) Schemes() []string { return []string{"https"} }

func (f *pagesFetcher) Fetch(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
	body := f.bodies[min(f.n, len(f.bodies)-1)]
	f.n++
	return pipeline.Response{
		URL: "https://example.com/", Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}
