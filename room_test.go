package vokter

import (
	"github.com/vokter/vokter/pipeline"

	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
)

// TestShortageOfRoom: with too little room on its disk a Router starts and waits; it stops
// and goes on by itself, says why, and the change that was made meanwhile arrives.
func TestShortageOfRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Int64
		transport, err := local.Open(local.Config{
			Topics: topology(nil), MinFree: 1000, Free: func(string) (int64, error) { return free.Load(), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		m, page := newMailbox(), &pagesFetcher{bodies: []string{"<p>Zeus.</p>", "<p>Zeus.</p>", "<p>Zeus and Argus.</p>"}}
		every := time.Minute
		sub := pipeline.Subscription{URL: "https://example.com/", Keywords: []string{"Argus"}, Sinks: []string{"box"}}
		r, stop := lives(t, Config{
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
		<-m.came
		if got := m.take(); len(got) != 1 || len(got[0].Diffs) != 1 || got[0].Diffs[0].Keyword != "Argus" {
			t.Errorf("got %+v", got)
		}
		if err := r.Subscribe(context.Background(), other); err != nil {
			t.Error(err)
		}
	})
}

// stuckTransport holds on to what it has: its disk takes no commit until released.
type stuckTransport struct {
	flow.Transport
	released chan struct{}
}

func (stuckTransport) Idle() bool { return false }
func (s stuckTransport) Close() error {
	<-s.released
	return s.Transport.Close()
}

// TestAStuckStoreEnds: Run ends within its limits though what is below it does not, and says
// what to do.
func TestAStuckStoreEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, err := local.Open(local.Config{Topics: topology(nil)})
		if err != nil {
			t.Fatal(err)
		}
		stuck := stuckTransport{inner, make(chan struct{})}
		defer close(stuck.released)
		r, err := New(Config{Transport: stuck})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-r.Running()
			cancel()
		}()
		began := time.Now()
		if err := r.Run(ctx); err == nil || !strings.Contains(err.Error(), "see that it answers") {
			t.Errorf("got %v, want what to do", err)
		}
		if d := time.Since(began); d > 25*time.Second {
			t.Errorf("Run ended after %v", d)
		}
	})
}
