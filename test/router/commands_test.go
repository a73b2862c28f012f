package router_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// listOnce lists the pages of dir without its configuration.
func listOnce(t *testing.T, dir string) inspect.Listing {
	t.Helper()
	r, stop := startRouter(t, vokter.Config{Dir: dir, Mode: vokter.ModeCommands})
	defer stop()
	l, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestWhoOnlyLooksKeepsTheGroupsOfOthers(t *testing.T) {
	s, box, dir := newSite(t, "<p>in stock</p>"), newMailbox(), t.TempDir()
	audited := func(keyword string) (n int) {
		r, err := vokter.New(watchConfig(s, box, dir, keyword))
		if err != nil {
			t.Fatal(err)
		}
		r.Handle("audit", flow.TopicSubscriptions, flow.ProcessorFunc(func(_ context.Context, tx flow.Tx, m flow.Message) error {
			before := 0
			for range tx.State(m.Key).Scan("") {
				before++
			}
			n = max(n, before)
			return tx.State(m.Key).Set(m.ID, nil)
		}))
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := audited("stock")
	listOnce(t, dir)
	if got := audited("sold"); got <= first {
		t.Errorf("another group has %d values at the end, want more than the %d of the first run", got, first)
	}
}

func TestWhoOnlyLooksDecidesNothing(t *testing.T) {
	s, box, ops, dir := newSite(t, "no"), newMailbox(), newMailbox(), t.TempDir()
	s.answer(http.StatusInternalServerError)
	cfg := twoClients(s, box, ops, dir)
	cfg.Expire.After, cfg.Checks = -1, 12
	cfg.Health = nil
	runToEnd(t, cfg)
	l := listOnce(t, dir)
	if len(l.Pages) != 1 || l.Pages[0].State != inspect.StateFailing || l.Pages[0].Failures != 12 {
		t.Fatalf("listing %+v", l.Pages)
	}
	transport := openTransport(t, dir)
	r, stop := startRouter(t, vokter.Config{Transport: transport, Mode: vokter.ModeCommands})
	check, page := l.Pages[0].Checks, s.URL+"/a"
	event := pipeline.Health{ID: "event", Event: pipeline.HealthOverdue, Time: time.Now()}
	if err := transport.Publish(t.Context(), flow.HealthMessage(event)); err != nil {
		t.Fatal(err)
	}
	if err := r.Cancel(t.Context(), page, "second"); err != nil {
		t.Fatal(err)
	}
	stop()
	if l = listOnce(t, dir); l.Pages[0].Checks != check || len(l.Pages[0].Subscriptions) != 1 {
		t.Errorf("listing %+v, want no further check and one subscription", l.Pages)
	}
	cfg.Health, cfg.Checks = []string{"ops"}, 1
	cfg.Subscriptions = cfg.Subscriptions[:1]
	runToEnd(t, cfg)
	if got := eventsSentTo(ops, pipeline.HealthOverdue); len(got) != 1 {
		t.Errorf("%d events, want the one that waited", len(got))
	}
}

func TestCommandsAreRefusedInTheWordsOfIndex(t *testing.T) {
	dir := t.TempDir()
	runToEnd(t, watchConfig(newSite(t, "x"), newMailbox(), dir, "stock"))
	r, stop := startRouter(t, vokter.Config{Dir: dir, Mode: vokter.ModeCommands})
	defer stop()
	err := r.Resume(t.Context(), "https://example.com/", "")
	if refused, ok := errors.AsType[*flow.Refusal](err); !ok || refused.Code != flow.CodeNotFound {
		t.Errorf("Resume: %v", err)
	}
	if _, err := r.Explain(t.Context(), "https://example.com/", inspect.ExplainFilter{}); err == nil {
		t.Error("a page that nobody watches was explained")
	}
}

// partialTransport is a Transport that others share: it handles only what begins with no prefix of
// others.
type partialTransport struct {
	flow.Transport
	foreignPrefixes atomic.Pointer[[]string]
}

func (s *partialTransport) Owns(key string) bool {
	others := s.foreignPrefixes.Load()
	return others == nil || !slices.ContainsFunc(*others, func(o string) bool { return strings.HasPrefix(key, o) })
}

func (s *partialTransport) Gauges() []flow.Gauge {
	return []flow.Gauge{{Name: "vokter_lanes", Value: 32}}
}

// startPartial returns a Router over shared that has delivered a change of its page.
func startPartial(t *testing.T) (r *vokter.Router, shared *partialTransport, page string) {
	t.Helper()
	shared, page = &partialTransport{Transport: openTransport(t, "")}, "https://example.com/"
	box := newMailbox()
	r, stop := startRouter(t, vokter.Config{
		Transport: shared, Sinks: map[string]pipeline.Sink{"box": box}, Every: &zeroInterval,
		Fetchers:      []pipeline.Fetcher{&pagesFetcher{bodies: []string{"<p>Zeus</p>", "<p>Zeus and Argus</p>"}}},
		Fetch:         vokter.FetchConfig{Rate: 1000},
		Subscriptions: []pipeline.Subscription{{URL: page, Keywords: []string{"Argus"}, Sinks: []string{"box"}}},
	})
	t.Cleanup(stop)
	<-box.arrived
	return r, shared, page
}

// TestElsewhere: of pages and receivers that another process looks after nothing is said.
func TestElsewhere(t *testing.T) {
	r, shared, page := startPartial(t)
	if l, err := r.List(t.Context(), inspect.ListFilter{URL: page}); err != nil || len(l.Pages) != 1 || len(l.Receivers) != 1 {
		t.Fatalf("its own: %+v, %v", l, err)
	}

	shared.foreignPrefixes.Store(&[]string{"box"})
	e, err := r.Explain(t.Context(), page, inspect.ExplainFilter{})
	if err != nil || len(e.Changes) != 1 || e.Changes[0].Matches[0].Delivery != inspect.DeliveryElsewhere {
		t.Errorf("another's receiver: %+v, %v", e, err)
	}
	if l, err := r.List(t.Context(), inspect.ListFilter{}); err != nil || len(l.Pages) != 1 || len(l.Receivers) != 0 {
		t.Errorf("another's receiver: %+v, %v", l, err)
	}

	shared.foreignPrefixes.Store(&[]string{"http"})
	_, explain := r.Explain(t.Context(), page, inspect.ExplainFilter{})
	_, list := r.List(t.Context(), inspect.ListFilter{URL: page})
	for _, err := range []error{explain, list} {
		if !errors.Is(err, inspect.ErrElsewhere) || !strings.Contains(err.Error(), page) {
			t.Errorf("another's page: %v", err)
		}
	}
}

func TestGauges(t *testing.T) {
	values := func(r *vokter.Router) map[string]float64 {
		all := make(map[string]float64)
		for _, g := range r.Gauges() {
			all[g.Name] += g.Value
		}
		return all
	}
	early, err := vokter.New(vokter.Config{Transport: &partialTransport{Transport: sharedTransport(t)}})
	if err != nil {
		t.Fatal(err)
	}
	got := values(early)
	if _, known := got["vokter_overdue_pages"]; known || got["vokter_ready"] != 0 || got["vokter_lanes"] != 32 {
		t.Errorf("before Run: %v", got)
	}
	r, _, _ := startPartial(t)
	// The notification may arrive before the stages in front have counted what led to it.
	waitFor(t, "all stages have counted", func() bool {
		got = values(r)
		return got["vokter_versions_total"] >= 2 && got["vokter_changes_total"] >= 1 && got["vokter_notifications_total"] >= 1
	})
	for name, want := range map[string]float64{
		"vokter_ready": 1, "vokter_overdue_pages": 0, "vokter_versions_total": 2, "vokter_changes_total": 1, "vokter_notifications_total": 1,
		"vokter_checks_failed_total": 0, "vokter_lanes": 32,
	} {
		if v, known := got[name]; !known || v != want {
			t.Errorf("%s: got %v, want %v", name, v, want)
		}
	}
	if got["vokter_checks_total"] < 2 {
		t.Errorf("got %v checks, want at least 2", got["vokter_checks_total"])
	}
}

// TestPausedSink: a sink that is paused is listed so, and a retry of it is refused.
func TestPausedSink(t *testing.T) {
	held, box := newMailbox(), newMailbox()
	r, stop := startRouter(t, vokter.Config{
		Dir: t.TempDir(), Sinks: map[string]pipeline.Sink{"held": held, "box": box}, Every: &zeroInterval,
		Fetchers: []pipeline.Fetcher{&pagesFetcher{bodies: []string{"<p>Zeus</p>", "<p>Zeus and Argus</p>"}}},
		Fetch:    vokter.FetchConfig{Rate: 1000},
		Delivery: vokter.DeliveryConfig{Receivers: map[string]pipeline.Receiving{"held": {Paused: true}}},
		Subscriptions: []pipeline.Subscription{
			{URL: "https://example.com/", Keywords: []string{"Argus"}, Sinks: []string{"held", "box"}},
		},
	})
	defer stop()
	<-box.arrived
	l, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil || len(l.Receivers) != 2 || l.Receivers[0].State != inspect.StateActive || l.Receivers[1].State != inspect.StatePaused {
		t.Errorf("got %+v, %v, want the second paused", l.Receivers, err)
	}
	if _, err := r.Retry(t.Context(), flow.RetryFilter{Sink: "held"}); err == nil || !strings.Contains(err.Error(), `"held" is paused; resume it`) {
		t.Errorf("retry: got %v", err)
	}
	if tried, err := r.Retry(t.Context(), flow.RetryFilter{}); err != nil || len(tried) != 0 {
		t.Errorf("retry of all: got %v, %v", tried, err)
	}
}
