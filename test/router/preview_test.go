package router_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// startPreview runs a Router, which may fetch from the returned server.
func startPreview(t *testing.T, subs ...pipeline.Subscription) (*vokter.Router, *httptest.Server) {
	t.Helper()
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Shop</title><nav>Menu</nav><main><p>A lantern and a Lantern</p></main>")
	}))
	t.Cleanup(pages.Close)
	for i := range subs {
		subs[i].URL = pages.URL
	}
	r, stop := startRouter(t, vokter.Config{
		Sinks: map[string]pipeline.Sink{"phone": discardSink{}}, Subscriptions: subs,
		Fetch: vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
	})
	t.Cleanup(stop)
	return r, pages
}

// discardSink is a sink that delivers to nobody.
type discardSink struct{}

func (discardSink) Deliver(context.Context, pipeline.Notification) error { return nil }

func TestPreview(t *testing.T) {
	t.Parallel()
	r, pages := startPreview(t)
	s := pipeline.Subscription{URL: pages.URL, Keywords: []string{"lantern"}}
	s.Select = []pipeline.Selector{{CSS: "main"}}
	p, err := r.Preview(t.Context(), s, true)
	if err != nil || p.Title != "Shop" || strings.TrimSpace(p.Text) != "A lantern and a Lantern" || len(p.Places) != 2 || p.Text[p.Places[1].Start:p.Places[1].End] != "Lantern" || !strings.Contains(p.Source, "<nav>") {
		t.Errorf("got %+v, %v", p, err)
	}
	if l, err := r.List(t.Context(), inspect.ListFilter{}); err != nil || len(l.Pages) > 0 {
		t.Errorf("a preview left %+v, %v", l, err)
	}
	s.Select = []pipeline.Selector{{CSS: ".none"}}
	var failed *pipeline.FetchError
	if _, err := r.Preview(t.Context(), s, false); !errors.As(err, &failed) || failed.Class != pipeline.FailSelectorGone {
		t.Errorf("a selector that matches nothing: got %v", err)
	}
	var field *pipeline.FieldError
	s.Select = []pipeline.Selector{{CSS: "]["}}
	if _, err := r.Preview(t.Context(), s, false); !errors.As(err, &field) {
		t.Errorf("an invalid selector: got %v", err)
	}
	if _, err := r.Preview(t.Context(), pipeline.Subscription{URL: "http://169.254.169.254/"}, false); !errors.As(err, &failed) {
		t.Errorf("an address that pages may not have: got %v", err)
	}
}

// TestChange: a subscription that is replaced keeps its beginning; others stay.
func TestChange(t *testing.T) {
	r, pages := startPreview(t, pipeline.Subscription{Client: "yaml", Sinks: []string{"phone"}})
	sub := func(client string, keywords ...string) pipeline.Subscription {
		return pipeline.Subscription{URL: pages.URL, Client: client, Keywords: keywords, Sinks: []string{"phone"}}
	}
	whole := sub("ann", "old")
	part := sub("ann", "part")
	part.Select = []pipeline.Selector{{CSS: "main"}}
	for _, s := range []pipeline.Subscription{whole, part, sub("bob", "other")} {
		if err := r.Subscribe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	page, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil {
		t.Fatal(err)
	}
	document := flow.DocumentID(page.Pages[0].URL, pipeline.View{})
	if err := r.Change(t.Context(), document, sub("ann", "new")); err != nil {
		t.Fatal(err)
	}
	var got []string
	l, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range l.Pages[0].Subscriptions {
		got = append(got, fmt.Sprint(s.Client, s.Keywords, len(s.Select)))
	}
	for _, want := range []string{"ann[new] 0", "ann[part] 1", "bob[other] 0", "yaml[] 0"} {
		if !strings.Contains(strings.Join(got, " "), want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("got %v", got)
	}
	var refused *flow.Refusal
	if err := r.Change(t.Context(), document, sub("yaml", "new")); !errors.As(err, &refused) || refused.Code != flow.CodeConflict {
		t.Errorf("a subscription of the configuration: got %v", err)
	}
	if err := r.Change(t.Context(), document, sub("carl", "new")); !errors.As(err, &refused) || refused.Code != flow.CodeNotFound {
		t.Errorf("a subscription that there is not: got %v", err)
	}
}

// TestChangeByCommand: a Router of ModeCommands, which knows no sinks, replaces a subscription that another
// Router of the directory made.
func TestChangeByCommand(t *testing.T) {
	dir := t.TempDir()
	s := pipeline.Subscription{URL: pushedURL, Keywords: []string{"old"}, Sinks: []string{"phone"}, Interval: pipeline.Never}
	r, stop := startRouter(t, vokter.Config{Dir: dir, Sinks: map[string]pipeline.Sink{"phone": discardSink{}}})
	if err := r.Subscribe(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	stop()
	r, stop = startRouter(t, vokter.Config{Dir: dir, Mode: vokter.ModeCommands})
	defer stop()
	s.Keywords = []string{"new"}
	page, err := pageurl.Canonical(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Change(t.Context(), flow.DocumentID(page, s.View), s); err != nil {
		t.Fatal(err)
	}
	l, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil || len(l.Pages) != 1 || len(l.Pages[0].Subscriptions) != 1 || l.Pages[0].Subscriptions[0].Keywords[0] != "new" {
		t.Errorf("got %+v, %v", l.Pages, err)
	}
}

// refusingSink is a sink whose receiver refuses everything.
type refusingSink struct{}

func (refusingSink) Deliver(_ context.Context, n pipeline.Notification) error {
	return fmt.Errorf("refused %s", n.Type)
}

// slowSink is a sink whose attempts may take two minutes. It fails where it gets less.
type slowSink struct{}

func (slowSink) Timeout() time.Duration { return 2 * time.Minute }

func (slowSink) Deliver(ctx context.Context, _ pipeline.Notification) error {
	if end, ok := ctx.Deadline(); !ok || time.Until(end) < time.Minute {
		return fmt.Errorf("it ends at %v", end)
	}
	return nil
}

// TestSinkTestRetries: after a test that succeeds, what waits is delivered at once.
func TestSinkTestRetries(t *testing.T) {
	var works atomic.Bool
	tried := make(chan struct{}, 100)
	s, box := newSite(t, "<p>in stock</p>"), newMailbox()
	box.fail = func(pipeline.Notification) error {
		if !works.Load() {
			tried <- struct{}{}
			return errors.New("down")
		}
		return nil
	}
	cfg := changingConfig(s, watchConfig(s, box, "", "out of stock"))
	cfg.Checks, cfg.Every, cfg.Delivery.Retry = 0, new(20*time.Millisecond), []time.Duration{time.Hour}
	r, stop := startRouter(t, cfg)
	defer stop()
	<-tried
	waitFor(t, "the failure", func() bool {
		l, err := r.List(t.Context(), inspect.ListFilter{})
		return err == nil && len(l.Receivers) == 1 && l.Receivers[0].Reason != ""
	})
	works.Store(true)
	if err := r.TestSink(t.Context(), "box"); err != nil {
		t.Fatal(err)
	}
	<-box.arrived // the test
	<-box.arrived
	if got := box.take(); len(got) != 2 || got[1].Type == pipeline.NotificationTypeTest {
		t.Errorf("got %+v, want the test and what waited", got)
	}
}

func TestTestSink(t *testing.T) {
	r, stop := startRouter(t, vokter.Config{
		Sinks: map[string]pipeline.Sink{
			"phone": discardSink{}, "bad": refusingSink{}, "slow": slowSink{},
			"mad": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { panic("of the sink") }),
		},
		SinkOf: func(name string) pipeline.Sink {
			if name == "made" {
				return discardSink{}
			}
			return nil
		},
	})
	defer stop()
	for sink, want := range map[string]string{
		"phone": "<nil>", "bad": "refused test", "phon": `no sink is named "phon"; did you mean "phone"`,
		"slow": "<nil>", "made": "<nil>", "mad": "the sink panicked: of the sink",
	} {
		if got := fmt.Sprint(r.TestSink(t.Context(), sink)); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", sink, got, want)
		}
	}
}
