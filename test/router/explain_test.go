package router_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// withIdleRouter calls look with a Router over the data directory of cfg that does nothing by itself.
func withIdleRouter(t *testing.T, cfg vokter.Config, look func(*vokter.Router)) {
	t.Helper()
	cfg.Mode, cfg.Checks, cfg.Every = vokter.ModeCommands, 0, nil
	r, stop := startRouter(t, cfg)
	defer stop()
	look(r)
}

func explainPage(t *testing.T, cfg vokter.Config, f inspect.ExplainFilter) (e inspect.Explanation) {
	t.Helper()
	withIdleRouter(t, cfg, func(r *vokter.Router) {
		var err error
		if e, err = r.Explain(t.Context(), cfg.Subscriptions[0].URL, f); err != nil {
			t.Fatal(err)
		}
	})
	return e
}

func listPages(t *testing.T, cfg vokter.Config, f inspect.ListFilter) (l inspect.Listing) {
	t.Helper()
	withIdleRouter(t, cfg, func(r *vokter.Router) {
		var err error
		if l, err = r.List(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	})
	return l
}

// keywordReasons returns "keyword: why", or "keyword!" where it matched.
func keywordReasons(e inspect.Explanation) (out []string) {
	for _, k := range e.Keywords {
		if k.Matched {
			out = append(out, k.Keyword+"!")
		} else {
			out = append(out, k.Keyword+": "+k.Why)
		}
	}
	return out
}

func TestListAndExplain(t *testing.T) {
	t.Parallel()
	s, box := newSite(t, "<html lang=en><title>Shop</title><p>Zeus is in stock</p><p>Hera</p></html>"), newMailbox()
	cfg := watchConfig(s, box, t.TempDir(), "out of stock", "stock", "argus")
	cfg.Subscriptions[0].Events = []pipeline.Event{pipeline.Added, pipeline.Removed}
	runToEnd(t, cfg)

	baseline := explainPage(t, cfg, inspect.ExplainFilter{})
	want := "version 1 is the baseline, and nothing has changed since"
	if got := keywordReasons(baseline); !slices.Equal(got, []string{"out of stock: " + want, "stock: " + want, "argus: " + want}) {
		t.Errorf("of a baseline it says %q", got)
	}
	if len(baseline.Checks) != 1 || len(baseline.Changes) != 0 || baseline.Changes == nil {
		t.Errorf("checks %+v, changes %+v", baseline.Checks, baseline.Changes)
	}

	s.set("<html lang=en><title>Shop</title><p>Zeus is out of stock</p><p>Hera</p></html>")
	runToEnd(t, cfg)
	s.set("<html lang=en><title>Shop</title><p>Zeus is  out of stock</p><div>Hera</div></html>") // only spacing
	runToEnd(t, cfg)
	sent := box.take()
	if len(sent) != 1 {
		t.Fatalf("notifications %+v", sent)
	}

	e := explainPage(t, cfg, inspect.ExplainFilter{})
	if len(e.Checks) != 3 || e.Checks[0].Check <= e.Checks[1].Check || e.Checks[1].Status != http.StatusOK || e.Checks[1].Bytes == 0 {
		t.Errorf("checks %+v", e.Checks)
	}
	doc := e.Page.Documents[0]
	if v := e.Checks[1].Versions; len(v) != 1 || v[doc.ID] != 2 || e.Checks[1].Result != flow.OutcomeRead || e.Checks[0].Result != flow.OutcomeUnchanged {
		t.Errorf("check 2 made %v, results %s and %s", v, e.Checks[1].Result, e.Checks[0].Result)
	}
	if len(e.Changes) != 1 || len(e.Changes[0].Matches) != 1 {
		t.Fatalf("changes %+v", e.Changes)
	}
	c, m := e.Changes[0], e.Changes[0].Matches[0]
	if c.ID != sent[0].Change || c.Version != 2 || c.Check != e.Checks[1].Check || c.Document != doc.ID || !c.Time.Equal(sent[0].Time) {
		t.Errorf("change %+v, and the notification %+v", c, sent[0])
	}
	if m.Notification != sent[0].ID || m.Client != "default" || !slices.Equal(m.Keywords, []string{"out of stock"}) ||
		m.Sink != "box" || m.Delivery != inspect.DeliveryDelivered || m.Attempts != 1 || m.DeliveryTime.IsZero() {
		t.Errorf("match %+v", m)
	}
	if got := keywordReasons(e); !slices.Equal(got, []string{
		"out of stock!",
		"stock: it stayed, and text beside it changed; near: block would report that",
		"argus: it is in neither version",
	}) {
		t.Errorf("it says %q", got)
	}
	for _, k := range e.Keywords {
		if k.Version != 2 || k.Document != doc.ID || k.Client != "default" {
			t.Errorf("keyword %+v", k)
		}
	}

	// Filters.
	one := explainPage(t, cfg, inspect.ExplainFilter{Keyword: "argus", Client: "default"})
	if len(one.Keywords) != 1 || len(one.Changes) != 1 || len(one.Changes[0].Matches) != 0 {
		t.Errorf("of argus alone it says %q of %+v", keywordReasons(one), one.Changes)
	}
	if got := keywordReasons(explainPage(t, cfg, inspect.ExplainFilter{Keyword: "zeus"})); !slices.Equal(got, []string{"zeus: no subscription to this page has this keyword"}) {
		t.Errorf("of a keyword that nobody has it says %q", got)
	}

	l := listPages(t, cfg, inspect.ListFilter{})
	if len(l.Pages) != 1 || len(l.Receivers) != 1 {
		t.Fatalf("listing %+v", l)
	}
	p := l.Pages[0]
	if p.URL != s.URL+"/a" || p.State != inspect.StateActive || p.Checks != e.Checks[0].Check || p.LastCheck.IsZero() || p.LastCheck.After(e.Checks[0].Time) || p.Failures != 0 || p.Reason != "" {
		t.Errorf("page %+v", p)
	}
	if d := p.Documents[0]; d.Version != 2 || d.Title != "Shop" || d.Language != "en" || d.TextHash == "" || d.Time.IsZero() || d.State != inspect.StateActive {
		t.Errorf("document %+v", d)
	}
	if sub := p.Subscriptions[0]; sub.Client != "default" || sub.State != inspect.StateActive || sub.Origin != "go" || sub.Document != doc.ID || sub.From != 0 {
		t.Errorf("subscription %+v", sub)
	}
	got := l.Receivers[0]
	if want := (inspect.Receiver{Sink: "box", State: inspect.StateActive, Used: true, LastSuccess: got.LastSuccess}); got != want || got.LastSuccess.IsZero() {
		t.Errorf("receiver %+v, want %+v", got, want)
	}
}

func TestExplainAfterFailures(t *testing.T) {
	s, box := newSite(t, "<p>in stock</p>"), newMailbox()
	cfg := watchConfig(s, box, t.TempDir(), "out")
	cfg.Delivery.Retry = []time.Duration{time.Hour}
	runToEnd(t, cfg)
	refused := false
	box.fail = func(pipeline.Notification) error { refused = true; return errors.New("the receiver is full") }
	s.set("<p>out</p>")
	runToEnd(t, cfg)
	s.answer(http.StatusInternalServerError)
	cfg.Checks = 2
	runToEnd(t, cfg)
	if !refused {
		t.Fatal("nothing was tried")
	}
	e := explainPage(t, cfg, inspect.ExplainFilter{})
	p := e.Page
	if p.State != inspect.StateFailing || p.Failures != 2 || !strings.Contains(p.Reason, "500") || p.Since.IsZero() || p.Documents[0].Version != 2 {
		t.Errorf("page %+v", p)
	}
	if c := e.Checks[0]; c.Result != flow.OutcomeFailed || c.Class != pipeline.FailStatus || c.Status != http.StatusInternalServerError || c.Reason != p.Reason {
		t.Errorf("check %+v", c)
	}
	m := e.Changes[0].Matches[0]
	if m.Delivery != inspect.DeliveryPending || m.Attempts != 1 || m.Reason != "the receiver is full" || m.DeliveryTime.IsZero() {
		t.Errorf("match %+v", m)
	}
	if got := keywordReasons(e); !slices.Equal(got, []string{"out!"}) {
		t.Errorf("it says %q", got)
	}
	l := listPages(t, cfg, inspect.ListFilter{})
	if rc := l.Receivers[0]; rc.State != inspect.StateFailing || rc.Pending != 1 || rc.Failures != 1 || rc.Reason != "the receiver is full" || rc.Since.IsZero() || !rc.NextAttempt.After(rc.Since) {
		t.Errorf("receiver %+v", rc)
	}

	withIdleRouter(t, cfg, func(r *vokter.Router) {
		_, err := r.Explain(t.Context(), "https://example.com/other", inspect.ExplainFilter{})
		if refusal, ok := errors.AsType[*flow.Refusal](err); !ok || refusal.Code != flow.CodeNotFound || !strings.Contains(refusal.Message, "https://example.com/other is not watched") {
			t.Errorf("of an unknown page: %v", err)
		}
		if _, err := r.Explain(t.Context(), "nowhere", inspect.ExplainFilter{}); err == nil {
			t.Error("what is no URL is explained")
		}
		if _, err := r.Explain(t.Context(), s.URL+"/a", inspect.ExplainFilter{Client: "nobody"}); err == nil {
			t.Error("a client without a subscription is explained")
		}
		if _, err := r.List(t.Context(), inspect.ListFilter{URL: "nowhere"}); err == nil {
			t.Error("what is no URL is listed")
		}
	})
}

// TestExplainWithoutTheOldVersion keeps one version, so that the change cannot be made again.
func TestExplainWithoutTheOldVersion(t *testing.T) {
	s, box := newSite(t, "<p>in stock</p>"), newMailbox()
	cfg := watchConfig(s, box, t.TempDir(), "out", "argus")
	cfg.Retention.Age = time.Nanosecond
	runToEnd(t, cfg)
	s.set("<p>out</p>")
	runToEnd(t, cfg)
	want := []string{"out!", "argus: version 1 is no longer kept, so the change cannot be compared again"}
	if got := keywordReasons(explainPage(t, cfg, inspect.ExplainFilter{})); !slices.Equal(got, want) {
		t.Errorf("it says %q", got)
	}
}

func TestExplainWhatExpired(t *testing.T) {
	s, box := newSite(t, "<p>in stock</p>"), newMailbox()
	cfg := watchConfig(s, box, t.TempDir(), "out")
	runToEnd(t, cfg)
	s.set("<p>out</p>")
	runToEnd(t, cfg)
	s.answer(http.StatusInternalServerError)
	cfg.Checks, cfg.Expire.Retry = 12, -1
	runToEnd(t, cfg)
	sent := box.take()
	if len(sent) != 2 || sent[1].Status != pipeline.StatusTimeout {
		t.Fatalf("notifications %+v", sent)
	}
	e := explainPage(t, cfg, inspect.ExplainFilter{})
	p := e.Page
	if p.State != inspect.StateExpired || p.Failures != 10 || !strings.Contains(p.Reason, "500") || p.Since.IsZero() || !p.NextCheck.IsZero() || p.Checks != e.Checks[0].Check || p.LastCheck.IsZero() {
		t.Errorf("page %+v", p)
	}
	if sub := p.Subscriptions[0]; sub.State != inspect.StateExpired || !strings.Contains(sub.Reason, "500") || sub.Since.IsZero() {
		t.Errorf("subscription %+v", sub)
	}
	if len(e.Checks) != 12 || len(e.Changes) != 2 {
		t.Fatalf("%d checks, changes %+v", len(e.Checks), e.Changes)
	}
	if c := e.Changes[0]; c.Status != pipeline.StatusTimeout || c.Reason != sent[1].Reason || c.Version != 0 || c.Matches[0].Notification != sent[1].ID || c.Matches[0].Delivery != inspect.DeliveryDelivered {
		t.Errorf("the expiry is %+v", c)
	}
	if got := keywordReasons(e); len(got) != 1 || !strings.HasPrefix(got[0], "out: the subscription expired: ") {
		t.Errorf("it says %q", got)
	}
}

func TestExplainTellsWhatIsCancelled(t *testing.T) {
	s, box := newSite(t, "<p>in stock</p>"), newMailbox()
	cfg := watchConfig(s, box, t.TempDir(), "out")
	second := cfg.Subscriptions[0]
	second.Client, second.Keywords = "second", []string{"in"}
	cfg.Subscriptions = append(cfg.Subscriptions, second)
	cfg.Delivery.Retry = []time.Duration{time.Hour}
	runToEnd(t, cfg)
	box.fail = func(pipeline.Notification) error { return errors.New("later") }
	s.set("<p>out</p>")
	runToEnd(t, cfg)
	if got := listPages(t, cfg, inspect.ListFilter{Client: "second"}); len(got.Pages) != 1 || len(got.Pages[0].Subscriptions) != 1 || got.Pages[0].Subscriptions[0].Client != "second" {
		t.Errorf("of the second client it lists %+v", got.Pages)
	}
	if got := explainPage(t, cfg, inspect.ExplainFilter{Client: "second"}).Changes[0].Matches; len(got) != 1 || got[0].Client != "second" {
		t.Errorf("of the second client it says %+v", got)
	}
	cfg.Subscriptions = cfg.Subscriptions[1:]
	runToEnd(t, cfg)
	e := explainPage(t, cfg, inspect.ExplainFilter{})
	if len(e.Page.Subscriptions) != 1 || e.Page.Subscriptions[0].Client != "second" {
		t.Errorf("subscriptions %+v", e.Page.Subscriptions)
	}
	if got := keywordReasons(e); !slices.Equal(got, []string{"in!"}) {
		t.Errorf("it says %q", got)
	}
	for _, m := range e.Changes[0].Matches {
		want := inspect.DeliveryPending // the receiver is tried again in an hour
		if m.Client == "default" {
			want = inspect.DeliveryDropped
		}
		if m.Delivery != want {
			t.Errorf("match %+v, want it %s", m, want)
		}
	}
	// With the last subscription all of it goes.
	withIdleRouter(t, cfg, func(r *vokter.Router) {
		if err := r.Cancel(t.Context(), second.URL, "second"); err != nil {
			t.Fatal(err)
		}
		l, err := r.List(t.Context(), inspect.ListFilter{})
		if err != nil || len(l.Pages) != 0 || len(l.Receivers) != 1 || l.Receivers[0].State != inspect.StateFailing {
			t.Errorf("it lists %+v, %v", l, err)
		}
		if l, err := r.List(t.Context(), inspect.ListFilter{URL: second.URL}); err != nil || len(l.Pages) != 0 || len(l.Receivers) != 0 {
			t.Errorf("of the page it lists %+v, %v", l, err)
		}
		if _, err := r.Explain(t.Context(), second.URL, inspect.ExplainFilter{}); err == nil {
			t.Error("a page that nobody watches is explained")
		}
	})
}

// TestExplainInMemory looks while the Router runs and has no directory.
func TestExplainInMemory(t *testing.T) {
	s, box := newSite(t, "<p>in stock</p>"), newMailbox()
	cfg := watchConfig(s, box, "", "OUT", "argus")
	cfg.Checks, cfg.Subscriptions[0].MatchCase = 0, true
	second := cfg.Subscriptions[0]
	second.URL, second.MatchCase = s.URL+"/b", false
	cfg.Subscriptions = append(cfg.Subscriptions, second)
	r, stop := startRouter(t, cfg)
	defer stop()
	waitFor(t, "the baselines of both pages", func() bool { return r.Summary().Versions == 2 })
	s.set("<p>out</p>")
	<-box.arrived
	waitFor(t, "both changes and the notification", func() bool { return r.Summary().Changes == 2 && r.Summary().Delivered == 1 })
	e, err := r.Explain(t.Context(), s.URL+"/a", inspect.ExplainFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if got := keywordReasons(e); !slices.Equal(got, []string{
		`OUT: it is there as "out", which would match with match_case: false`, "argus: it is in neither version",
	}) {
		t.Errorf("it says %q", got)
	}
	if b, err := json.Marshal(e); err != nil || !strings.Contains(string(b), `"keywords":[{"client":"default","document":`) {
		t.Errorf("as JSON: %s, %v", b, err)
	}
	stop()
	if _, err := r.List(t.Context(), inspect.ListFilter{}); !errors.Is(err, vokter.ErrStopped) {
		t.Errorf("List after the end: %v", err)
	}
	if _, err := r.Explain(t.Context(), s.URL+"/a", inspect.ExplainFilter{}); !errors.Is(err, vokter.ErrStopped) {
		t.Errorf("Explain after the end: %v", err)
	}
}
