package router_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
)

func TestOfflineIsSentOnceAcrossRestarts(t *testing.T) {
	box, ops, dir := newMailbox(), newMailbox(), t.TempDir()
	cfg := twoClients(newSite(t, ""), box, ops, dir)
	sites := watchSites(t, &cfg, 3)
	for _, s := range sites {
		s.answer(http.StatusBadGateway)
	}
	cfg.Checks = 3
	runToEnd(t, cfg)
	runToEnd(t, cfg)
	if got := eventsSentTo(ops, pipeline.HealthOffline); len(got) != 1 {
		t.Errorf("%d offline events over a restart, want 1", len(got))
	}
	sites[0].answer(http.StatusOK)
	runToEnd(t, cfg)
	if got := eventsSentTo(ops, pipeline.HealthOnline); len(got) != 1 {
		t.Errorf("%d online events after a restart, want 1", len(got))
	}
}

// TestExpiryIsSentOnce: a sink for health events that is told by a notification that a page was
// given up is not told of the event as well.
func TestExpiryIsSentOnce(t *testing.T) {
	site, box, ops := newSite(t, "argus"), newMailbox(), newMailbox()
	cfg := twoClients(site, box, ops, t.TempDir())
	cfg.Health = append(cfg.Health, cfg.Subscriptions[0].Sinks...)
	cfg.Expire.After, cfg.Expire.Retry, cfg.Checks = 2, -1, 2
	site.answer(http.StatusNotFound)
	runToEnd(t, cfg)
	if got := eventsSentTo(ops, pipeline.HealthExpired); len(got) != 1 {
		t.Errorf("the sink for health events was told %d times of the end, want once", len(got))
	}
	if got := eventsSentTo(box, pipeline.HealthExpired); len(got) != 0 {
		t.Errorf("the receiver was told of the end %d times as a health event besides its notification", len(got))
	}
}

func TestFinishEndsAStartThatWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		applied := make(chan struct{})
		r, err := vokter.New(vokter.Config{
			Transport:     fullTransport{openTransport(t, ""), applied},
			Sinks:         map[string]pipeline.Sink{"box": newMailbox()},
			Subscriptions: []pipeline.Subscription{{URL: "https://example.com/", Keywords: []string{"k"}, Sinks: []string{"box"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- r.Run(t.Context()) }()
		<-applied
		r.Finish()
		if err := <-ended; err != nil {
			t.Errorf("the configuration was not interrupted: %v", err)
		}
	})
}

// fullTransport takes nothing in until its context is done.
type fullTransport struct {
	flow.Transport
	applied chan struct{}
}

func (f fullTransport) Publish(ctx context.Context, _ ...flow.Message) error {
	close(f.applied)
	<-ctx.Done()
	return errors.New("no room")
}

func (fullTransport) States(_, _ string) iter.Seq2[string, flow.State] {
	return func(func(string, flow.State) bool) {}
}

// TestShortageOfRoom: with too little room on its disk a Router starts and waits; it stops
// and goes on by itself, says why, and the change that was made meanwhile arrives.
func TestShortageOfRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Int64
		transport, err := local.Open(local.Config{
			Topics: vokter.Topology(), MinFree: 1000, Free: func(string) (int64, error) { return free.Load(), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		m, page := newMailbox(), &pagesFetcher{bodies: []string{"<p>Zeus.</p>", "<p>Zeus.</p>", "<p>Zeus and Argus.</p>"}}
		every := time.Minute
		sub := pipeline.Subscription{URL: "https://example.com/", Keywords: []string{"Argus"}, Sinks: []string{"box"}}
		r, stop := startRouter(t, vokter.Config{
			Transport: transport, Sinks: map[string]pipeline.Sink{"box": m}, Fetchers: []pipeline.Fetcher{page}, Every: &every,
			Subscriptions: []pipeline.Subscription{sub},
		})
		defer stop()
		other := sub
		other.Client = "other"
		short := func(when string, fetched int) {
			t.Helper()
			synctest.Wait()
			err := r.Ready()
			if _, ok := errors.AsType[*local.Shortage](err); !ok || !strings.Contains(err.Error(), "disk") || !strings.Contains(err.Error(), "999 bytes free and needs 1000") {
				t.Errorf("%s: Ready: %v", when, err)
			}
			if err := r.Subscribe(context.Background(), other); err == nil || err.Error() != r.Ready().Error() {
				t.Errorf("%s: Subscribe: %v", when, err)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if page.n != fetched {
				t.Errorf("%s: %d pages were fetched in all, want %d", when, page.n, fetched)
			}
		}
		free.Store(999)
		time.Sleep(2 * time.Second)
		short("at the start", 0)

		free.Store(1000)
		time.Sleep(90 * time.Second) // two checks
		synctest.Wait()
		if err := r.Ready(); err != nil || page.n != 2 {
			t.Fatalf("with room: %v, %d fetches; want 2", err, page.n)
		}
		free.Store(999)
		time.Sleep(2 * time.Second)
		short("later", 2)

		free.Store(1000)
		<-m.arrived
		if got := m.take(); len(got) != 1 || len(got[0].Diffs) != 1 || got[0].Diffs[0].Keyword != "Argus" {
			t.Errorf("got %+v", got)
		}
		if err := r.Subscribe(context.Background(), other); err != nil {
			t.Error(err)
		}
	})
}
