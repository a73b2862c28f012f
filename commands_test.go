package vokter

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// peeks lists what is in dir, as somebody does who does not know its configuration.
func peeks(t *testing.T, dir string) inspect.Listing {
	t.Helper()
	r, stop := lives(t, Config{Dir: dir, Mode: ModeCommands})
	defer stop()
	l, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestWhoOnlyLooksKeepsTheGroupsOfOthers(t *testing.T) {
	s, box, dir := newSite(t, "<p>in stock</p>"), newMailbox(), t.TempDir()
	audited := func() (n int) {
		r, err := New(watching(s, box, dir, "stock"))
		if err != nil {
			t.Fatal(err)
		}
		r.Handle("audit", flow.TopicSnapshots, flow.ProcessorFunc(func(_ context.Context, tx flow.Tx, m flow.Message) error {
			return tx.State(m.Key).Set(m.ID, nil)
		}))
		if err := r.open(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, st := range r.transport.States("audit") {
			for range st.Scan("") {
				n++
			}
		}
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return n
	}
	audited()
	peeks(t, dir)
	if got := audited(); got != 1 {
		t.Errorf("another group has %d values left, want 1", got)
	}
}

func TestWhoOnlyLooksDecidesNothing(t *testing.T) {
	s, box, ops, dir := newSite(t, "no"), newMailbox(), newMailbox(), t.TempDir()
	s.answer(http.StatusInternalServerError)
	cfg := twoClients(s, box, ops, dir)
	cfg.Expire.After, cfg.Checks = -1, 12
	cfg.Health = nil
	runs(t, cfg)
	l := peeks(t, dir)
	if len(l.Pages) != 1 || l.Pages[0].State != inspect.StateFailing || l.Pages[0].Failures != 12 {
		t.Fatalf("listing %+v", l.Pages)
	}
	r, stop := lives(t, Config{Dir: dir, Mode: ModeCommands})
	check, page := l.Pages[0].Checks, s.URL+"/a"
	event := pipeline.Health{ID: "event", Event: pipeline.HealthOverdue, Time: r.cfg.Now()}
	if err := r.transport.Publish(t.Context(), flow.HealthMessage(event)); err != nil {
		t.Fatal(err)
	}
	if err := r.Cancel(t.Context(), page, "second"); err != nil {
		t.Fatal(err)
	}
	stop()
	if l = peeks(t, dir); l.Pages[0].Checks != check || len(l.Pages[0].Subscriptions) != 1 {
		t.Errorf("listing %+v, want no further check and one subscription", l.Pages)
	}
	cfg.Health, cfg.Checks = []string{"ops"}, 1
	cfg.Subscriptions = cfg.Subscriptions[:1]
	runs(t, cfg)
	if got := told(ops, pipeline.HealthOverdue); len(got) != 1 {
		t.Errorf("%d events, want the one that waited", len(got))
	}
}

func TestCommandsAreRefusedInTheWordsOfIndex(t *testing.T) {
	dir := t.TempDir()
	runs(t, watching(newSite(t, "x"), newMailbox(), dir, "stock"))
	r, stop := lives(t, Config{Dir: dir, Mode: ModeCommands})
	defer stop()
	err := r.Resume(t.Context(), "https://example.com/", "")
	if refused, ok := errors.AsType[*pipeline.Refusal](err); !ok || refused.Code != pipeline.CodeNotFound {
		t.Errorf("Resume: %v", err)
	}
	if _, err := r.Explain(t.Context(), "https://example.com/", inspect.ExplainFilter{}); err == nil {
		t.Error("a page that nobody watches was explained")
	}
}
