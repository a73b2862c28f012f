package router_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// eventsSentTo is what a health sink heard of one event.
func eventsSentTo(box *mailbox, event pipeline.HealthEvent) []pipeline.Notification {
	box.mu.Lock()
	defer box.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(box.all), func(n pipeline.Notification) bool { return n.Status != string(event) })
}

// twoClients is watching with a second client and a health sink.
func twoClients(s *site, box, ops *mailbox, dir string) vokter.Config {
	cfg := watchConfig(s, box, dir, "stock")
	second := cfg.Subscriptions[0]
	second.Client = "second"
	cfg.Subscriptions = append(cfg.Subscriptions, second)
	cfg.Sinks["ops"] = ops
	cfg.Health = []string{"ops"}
	return cfg
}

func TestAPageThatFailsExpires(t *testing.T) {
	t.Parallel()
	s, box, ops, dir := newSite(t, "no"), newMailbox(), newMailbox(), t.TempDir()
	s.answer(http.StatusInternalServerError)
	cfg := twoClients(s, box, ops, dir)
	cfg.Expire.Retry = -1
	for _, checks := range []int{4, 8, 2} { // the count survives restarts
		cfg.Checks = checks
		runToEnd(t, cfg)
	}
	var clients []string
	for _, n := range box.take() {
		if n.Status != pipeline.StatusTimeout || n.URL != s.URL+"/a" || n.Diffs == nil || len(n.Diffs) != 0 || n.Reason == "" {
			t.Errorf("notification %+v", n)
		}
		clients = append(clients, n.Client)
	}
	slices.Sort(clients)
	if want := []string{"default", "second"}; !slices.Equal(clients, want) {
		t.Errorf("timeouts for %q, want %q", clients, want)
	}
	if s.gets != 10 {
		t.Errorf("%d GETs, want 10", s.gets)
	}
	for event, want := range map[pipeline.HealthEvent]int{pipeline.HealthFailing: 1, pipeline.HealthExpired: 1, pipeline.HealthRecovered: 0} {
		if got := eventsSentTo(ops, event); len(got) != want {
			t.Errorf("%d %s events, want %d", len(got), event, want)
		}
	}

	// The entry is the same, so it stays expired; asked for, it begins with a new baseline.
	s.answer(http.StatusOK)
	s.set("<p>out of stock</p>")
	cfg.ResumeExpired = true
	runToEnd(t, cfg)
	s.set("<p>in stock</p>")
	runToEnd(t, cfg)
	if got := box.take(); len(got) != 0 {
		t.Errorf("%d notifications of a baseline: %+v", len(got), got)
	}
	s.set("<p>stock is out of stock</p>")
	runToEnd(t, cfg)
	if got := box.take(); len(got) != 2 {
		t.Errorf("%d notifications after the resumption, want 2", len(got))
	}
}

func TestASelectorThatIsGoneNeverExpires(t *testing.T) {
	t.Parallel()
	s, box, ops := newSite(t, "<main>in stock</main>"), newMailbox(), newMailbox()
	cfg := twoClients(s, box, ops, t.TempDir())
	for i := range cfg.Subscriptions {
		cfg.Subscriptions[i].Select = []pipeline.Selector{{CSS: "main"}}
	}
	runToEnd(t, cfg)
	s.set("<p>redesigned</p>")
	cfg.Checks = 12
	runToEnd(t, cfg)
	if got := box.take(); len(got) != 0 {
		t.Errorf("notifications %+v", got)
	}
	if got := eventsSentTo(ops, pipeline.HealthSelectorGone); len(got) != 1 {
		t.Errorf("%d selector_gone events, want 1", len(got))
	}
	for state, want := range map[string]int{inspect.StateFailing: 1, inspect.StateActive: 0} {
		if got := listPages(t, cfg, inspect.ListFilter{State: state}).Pages; len(got) != want {
			t.Errorf("%d pages are %s, want %d", len(got), state, want)
		} else if want == 1 && (got[0].State != state || got[0].Since.IsZero() || !strings.Contains(got[0].Reason, "main")) {
			t.Errorf("got %s since %v: %q", got[0].State, got[0].Since, got[0].Reason)
		}
	}
	s.set("<main>out of stock</main>")
	cfg.Checks = 1
	runToEnd(t, cfg)
	if got := eventsSentTo(ops, pipeline.HealthRecovered); len(got) != 1 {
		t.Errorf("%d recovered events, want 1", len(got))
	}
}

// watchSites makes cfg watch n new sites, and nothing else, for "out".
func watchSites(t *testing.T, cfg *vokter.Config, n int) (sites []*site) {
	cfg.Subscriptions = nil
	for range n {
		s := newSite(t, "<p>in stock</p>")
		sites = append(sites, s)
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{URL: s.URL, Keywords: []string{"out"}, Sinks: []string{"box"}})
	}
	return sites
}

func TestOfflineExpiresNothing(t *testing.T) {
	box, ops, dir := newMailbox(), newMailbox(), t.TempDir()
	cfg := twoClients(newSite(t, ""), box, ops, dir)
	sites := watchSites(t, &cfg, 4)
	runToEnd(t, cfg)
	for _, s := range sites {
		s.answer(http.StatusBadGateway)
	}
	keepInStep(sites, 3) // on a busy machine one could fail ten times before another is asked
	cfg.Checks = 14
	runToEnd(t, cfg)
	for _, s := range sites {
		s.answer(http.StatusOK)
		s.set("<p>out of stock</p>")
	}
	cfg.Checks = 1
	runToEnd(t, cfg)
	if got := box.take(); len(got) != len(sites) {
		t.Errorf("%d notifications, want one of each page: %+v", len(got), got)
	}
	if got := eventsSentTo(ops, pipeline.HealthOffline); len(got) != 1 {
		t.Errorf("%d offline events, want 1", len(got))
	}
	if got := eventsSentTo(ops, pipeline.HealthExpired); len(got) != 0 {
		t.Errorf("expired: %+v", got)
	}
}

func TestCancelDuringAFetch(t *testing.T) {
	s, box := newSite(t, "<p>in stock</p>"), newMailbox()
	cfg := watchConfig(s, box, t.TempDir(), "stock")
	cfg.Checks, cfg.Drain = 0, time.Minute
	held, release := make(chan struct{}), make(chan struct{})
	s.Config.Handler = holdRequests(s.Config.Handler, held, release)
	r, stop := startRouter(t, cfg)
	defer stop()
	<-held // the baseline
	release <- struct{}{}
	<-held
	s.set("<p>out of stock</p>")
	if err := r.Cancel(t.Context(), s.URL+"/a", "default"); err != nil {
		t.Fatal(err)
	}
	release <- struct{}{}
	listing, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil || len(listing.Pages) != 0 {
		t.Fatalf("after the cancel there is %+v, %v", listing.Pages, err)
	}
	sub := cfg.Subscriptions[0]
	if err := r.Subscribe(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	<-held // a fresh baseline: out of stock
	release <- struct{}{}
	<-held
	s.set("<p>sold out</p>")
	release <- struct{}{}
	<-held
	release <- struct{}{}
	<-box.arrived
	got := box.take()
	if len(got) != 1 || len(got[0].Diffs) != 1 || got[0].Diffs[0].Event != pipeline.Removed {
		t.Errorf("notifications %+v, want only that stock is removed", got)
	}
	close(release)
}

// holdRequests tells held of each request and serves it once release lets it.
func holdRequests(next http.Handler, held chan<- struct{}, release <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case held <- struct{}{}:
			<-release
		case <-r.Context().Done():
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestAReceiverThatIsGone(t *testing.T) {
	s, box, ops, dir := newSite(t, "<p>in stock</p>"), newMailbox(), newMailbox(), t.TempDir()
	cfg := twoClients(s, box, ops, dir)
	cfg.Subscriptions = cfg.Subscriptions[:1]
	runToEnd(t, cfg)
	box.fail = func(pipeline.Notification) error { return failure.Gone(errors.New("410 Gone")) }
	s.set("<p>none</p>")
	runToEnd(t, cfg)
	if got := eventsSentTo(ops, pipeline.HealthReceiverExpired); len(got) != 1 || got[0].Health.Receiver.Sink != "box" {
		t.Fatalf("receiver_expired events: %+v", got)
	}
	box.fail = nil

	look := cfg
	look.Mode, look.Checks = vokter.ModeCommands, 0
	r, stop := startRouter(t, look)
	listing, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil || len(listing.Pages) != 1 || listing.Pages[0].Subscriptions[0].State != inspect.StateExpired || listing.Pages[0].Subscriptions[0].Reason == "" {
		t.Errorf("listing %+v, %v", listing, err)
	}
	letters, err := r.DeadLetters(t.Context(), flow.DeadFilter{Sink: "box"})
	if err != nil || len(letters) != 1 {
		t.Errorf("dead letters %+v, %v", letters, err)
	}
	stop()

	again := look
	again.Mode = vokter.ModeDeliver
	r, stop = startRouter(t, again)
	if n, err := r.Replay(t.Context(), flow.DeadFilter{Sink: "box"}); n != 1 || err != nil {
		t.Fatalf("Replay: %d, %v", n, err)
	}
	r.Finish()
	stop()
	if got := box.take(); len(got) != 1 || got[0].ID != letters[0].Addressed.Notification.ID {
		t.Errorf("replayed %+v", got)
	}
	if got := eventsSentTo(ops, pipeline.HealthReceiverRecovered); len(got) != 1 {
		t.Errorf("%d receiver_recovered events, want 1", len(got))
	}
	// Its subscription goes on, from a fresh baseline.
	runToEnd(t, cfg)
	s.set("<p>in stock</p>")
	runToEnd(t, cfg)
	if got := box.take(); len(got) != 1 {
		t.Errorf("%d notifications after the receiver opened again, want 1", len(got))
	}
}

func TestListener(t *testing.T) {
	var heard []string
	hear := func(what string) func(context.Context, pipeline.Notification) error {
		return func(context.Context, pipeline.Notification) error { heard = append(heard, what); return nil }
	}
	l := vokter.Listener{OnNotification: hear("notification"), OnTimeout: hear("timeout")}
	for _, n := range []pipeline.Notification{{Status: pipeline.StatusOK}, {Status: pipeline.StatusTimeout}, {Status: "failing", Type: pipeline.NotificationTypeHealth}} {
		if err := l.Deliver(t.Context(), n); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"notification", "timeout"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

// TestDigestOverRestarts collects what two changes say, over the lives of several processes.
func TestDigestOverRestarts(t *testing.T) {
	s, box := newSite(t, "<html lang=en><title>Shop</title><p>Zeus is here</p></html>"), newMailbox()
	cfg := watchConfig(s, box, t.TempDir(), "stock")
	cfg.Subscriptions[0].Digest = &pipeline.Digest{Every: pipeline.Duration(30 * 24 * time.Hour), Max: 2}
	runToEnd(t, cfg)
	s.set("<html lang=en><title>Shop</title><p>Zeus is in stock</p></html>")
	runToEnd(t, cfg)
	if sent := box.take(); len(sent) != 0 {
		t.Fatalf("told at once: %+v", sent)
	}

	until := time.Now().Add(30 * 24 * time.Hour)
	e := explainPage(t, cfg, inspect.ExplainFilter{})
	if len(e.Changes) != 1 || len(e.Changes[0].Matches) != 1 {
		t.Fatalf("changes %+v", e.Changes)
	}
	m := e.Changes[0].Matches[0]
	if m.Delivery != inspect.DeliveryDigest || m.Digest != "" || m.DeliveryTime.After(until) || m.DeliveryTime.Before(until.Add(-time.Hour)) {
		t.Errorf("of the first change it says %+v", m)
	}
	l := listPages(t, cfg, inspect.ListFilter{})
	if len(l.Receivers) != 1 || l.Receivers[0].Collected != 1 || l.Receivers[0].Pending != 0 || !l.Receivers[0].NextDigest.Equal(m.DeliveryTime) {
		t.Errorf("receivers %+v", l.Receivers)
	}

	s.set("<html lang=en><title>Shop now</title><p>Zeus is out of stock</p><p>Hera is in stock</p></html>")
	runToEnd(t, cfg)
	sent := box.take()
	if len(sent) != 1 || sent[0].Type != pipeline.NotificationTypeDigest || len(sent[0].Items) != 2 || sent[0].Title != "Shop now" {
		t.Fatalf("told %+v", sent)
	}
	if i := sent[0].Items; i[0].ID != m.Notification || i[0].Version != 2 || i[1].Version != 3 || i[0].Diffs+i[1].Diffs != len(sent[0].Diffs) {
		t.Errorf("told %+v", sent[0])
	}
	if !strings.Contains(sent[0].Diffs[0].Snippet, "Zeus is in stock") {
		t.Errorf("first it says %+v", sent[0].Diffs[0])
	}
	for _, c := range explainPage(t, cfg, inspect.ExplainFilter{}).Changes {
		if m := c.Matches[0]; m.Delivery != inspect.DeliveryDelivered || m.Digest != sent[0].ID || m.Attempts != 1 {
			t.Errorf("of version %d it says %+v", c.Version, m)
		}
	}
}

// TestDigestInMemoryIsSentAtTheEnd ends a Router without a data directory while a digest is
// open.
func TestDigestInMemoryIsSentAtTheEnd(t *testing.T) {
	s, box := newSite(t, "<p>Zeus is here</p>"), newMailbox()
	cfg := watchConfig(s, box, "", "stock")
	cfg.Subscriptions[0].Digest = &pipeline.Digest{Every: pipeline.Duration(time.Hour)}
	cfg.Checks = 3
	cfg.Fetchers = []pipeline.Fetcher{&changingPages{}}
	runToEnd(t, cfg)
	sent := box.take()
	if len(sent) != 1 || len(sent[0].Items) != 2 {
		t.Errorf("told %+v", sent)
	}
}

// TestDigestInMemoryWaitsForWhatIsUnderWay holds a notification until the Router drains: the digest
// ends with it, not before.
func TestDigestInMemoryWaitsForWhatIsUnderWay(t *testing.T) {
	s, box := newSite(t, "<p>Zeus is here</p>"), newMailbox()
	cfg := watchConfig(s, box, "", "stock")
	cfg.Subscriptions[0].Digest = &pipeline.Digest{Every: pipeline.Duration(time.Hour)}
	cfg.Checks = 3
	cfg.Fetchers = []pipeline.Fetcher{&changingPages{}}
	var r *vokter.Router
	var handled atomic.Int64
	cfg.Middleware = map[string][]flow.Middleware{flow.GroupDelivery: {func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			if m.Type == flow.TypeAddressed && handled.Add(1) == 2 {
				waitFor(t, "the router to finish its work", func() bool { return strings.Contains(fmt.Sprint(r.Ready()), "finishing the work in progress") })
				select {
				case <-box.arrived:
					t.Error("the digest ended while a notification was under way")
				case <-time.After(100 * time.Millisecond):
				}
			}
			return next.Process(ctx, tx, m)
		})
	}}}
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sent := box.take(); len(sent) != 1 || len(sent[0].Items) != 2 {
		t.Errorf("told %+v", sent)
	}
}

// changingPages is a site on which something is in stock at every other check.
type changingPages struct{ checks atomic.Int64 }

func (*changingPages) Schemes() []string { return []string{"http"} }

func (c *changingPages) Fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	body := "<p>In stock</p>"
	if c.checks.Add(1)%2 == 0 {
		body = "<p>Sold out</p>"
	}
	return pipeline.Response{
		URL: r.URL, Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}
