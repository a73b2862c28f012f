package vokter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/test/txtest"
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

// TestSinksForHealthDoNotKeepEachOtherGoing: what is told of one of them to the other is
// itself delivered, and may fail.
func TestSinksForHealthDoNotKeepEachOtherGoing(t *testing.T) {
	h := &healthStage{sinks: func() []string { return []string{"one", "two"} }, now: time.Now}
	store := txtest.New()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i := range 10 {
		e := pipeline.Health{
			ID: flow.HealthID(pipeline.HealthReceiverFailing, "one", uint64(i)), Event: pipeline.HealthReceiverFailing,
			Time: at.Add(time.Duration(i) * time.Minute), Receiver: &pipeline.Receiver{Sink: "one"},
		}
		if err := store.Handle(t.Context(), h, flow.HealthMessage(e)); err != nil {
			t.Fatal(err)
		}
	}
	if sent := len(store.Take()); sent != 1 {
		t.Errorf("%d notifications of ten events within ten minutes, want 1", sent)
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

// TestRefusalsAreNotSentToSinks refuses a command. Only its sender gets the answer.
func TestRefusalsAreNotSentToSinks(t *testing.T) {
	h := &healthStage{sinks: func() []string { return []string{"ops"} }, now: time.Now}
	store := txtest.New()
	for _, event := range []pipeline.HealthEvent{pipeline.HealthRefused, pipeline.HealthDeadLetter} {
		if err := store.Handle(t.Context(), h, flow.HealthMessage(pipeline.Health{ID: string(event), Event: event})); err != nil {
			t.Fatal(err)
		}
	}
	if sent := store.Take(); len(sent) != 1 || !strings.Contains(string(sent[0].Body), `"status":"dead_letter"`) {
		t.Errorf("sent %+v, want the dead letter alone", sent)
	}
}

func TestFinishEndsAStartThatWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		applied := make(chan struct{})
		inner, err := local.Open(local.Config{Topics: topology(nil)})
		if err != nil {
			t.Fatal(err)
		}
		defer inner.Close()
		r.transport = fullTransport{inner, applied}
		r.liveConfig.Load().Subscriptions = []pipeline.Subscription{{URL: "https://example.com/", Keywords: []string{"k"}}}
		ended := make(chan error, 1)
		apply := func(ctx context.Context) error {
			return r.applyAtStart(ctx, &stages{index: index.New(index.Config{})})
		}
		go func() { ended <- r.runInterruptible(t.Context(), nil, apply) }()
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

// TestUnreadablePagesAreReportedOncePerHour pushes many pages that cannot be read.
func TestUnreadablePagesAreReportedOncePerHour(t *testing.T) {
	h := &healthStage{sinks: func() []string { return []string{"ops"} }, now: time.Now}
	store := txtest.New()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	bad := func(after time.Duration) {
		t.Helper()
		for i := range 100 {
			for _, page := range []string{"https://example.com/a", "https://example.com/b"} {
				e := pipeline.Health{ID: fmt.Sprint(after, i, page), Event: pipeline.HealthDeadLetter, Time: at.Add(after), URL: page}
				if err := store.Handle(t.Context(), h, flow.HealthMessage(e)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if sent := len(store.Take()); sent != 2 {
			t.Errorf("%d notifications of 200 unreadable versions of two pages, want one for each page", sent)
		}
	}
	bad(0)
	for _, m := range store.Due(at.Add(resendAfter)) {
		if err := store.Handle(t.Context(), h, m); err != nil {
			t.Fatal(err)
		}
	}
	if keys := store.Keys(); len(keys) != 0 {
		t.Errorf("%q are remembered for ever", keys)
	}
	bad(resendAfter)
}

// TestForeignHealthStopsNothing: anybody may write to a public topic, but what a newer
// version of this program sent must wait for it.
func TestForeignHealthStopsNothing(t *testing.T) {
	h := &healthStage{sinks: func() []string { return nil }, now: time.Now}
	for source, want := range map[string]failure.Class{"": failure.ClassBroken, "https://example.com/tool": failure.ClassPermanent} {
		err := txtest.New().Handle(t.Context(), h, flow.Message{ID: "1", Key: "k", Type: "vokter.surprise.v1", Source: source})
		if class, _ := failure.ClassOf(err); class != want {
			t.Errorf("source %q: got %v, want class %v", source, err, want)
		}
	}
}

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
		r, stop := startRouter(t, Config{
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
