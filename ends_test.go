package vokter

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// answer makes s answer with code.
func (s *site) answer(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
}

// told is what a health sink heard of one event.
func told(box *mailbox, event pipeline.HealthEvent) []pipeline.Notification {
	box.mu.Lock()
	defer box.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(box.all), func(n pipeline.Notification) bool { return n.Status != string(event) })
}

// twoClients is watching with a second client and a health sink.
func twoClients(s *site, box, ops *mailbox, dir string) Config {
	cfg := watching(s, box, dir, "stock")
	second := cfg.Subscriptions[0]
	second.Client = "second"
	cfg.Subscriptions = append(cfg.Subscriptions, second)
	cfg.Sinks["ops"] = ops
	cfg.Health = []string{"ops"}
	return cfg
}

func TestAPageThatFailsExpires(t *testing.T) {
	s, box, ops, dir := newSite(t, "no"), newMailbox(), newMailbox(), t.TempDir()
	s.answer(http.StatusInternalServerError)
	cfg := twoClients(s, box, ops, dir)
	for _, checks := range []int{4, 8, 2} { // the count survives restarts
		cfg.Checks = checks
		runs(t, cfg)
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
		if got := told(ops, event); len(got) != want {
			t.Errorf("%d %s events, want %d", len(got), event, want)
		}
	}

	// The entry is the same, so it stays expired; asked for, it begins with a new baseline.
	s.answer(http.StatusOK)
	s.set("<p>out of stock</p>")
	cfg.ResumeExpired = true
	runs(t, cfg)
	s.set("<p>in stock</p>")
	runs(t, cfg)
	if got := box.take(); len(got) != 0 {
		t.Errorf("%d notifications of a baseline: %+v", len(got), got)
	}
	s.set("<p>stock is out of stock</p>")
	runs(t, cfg)
	if got := box.take(); len(got) != 2 {
		t.Errorf("%d notifications after the resumption, want 2", len(got))
	}
}

func TestASelectorThatIsGoneNeverExpires(t *testing.T) {
	s, box, ops := newSite(t, "<main>in stock</main>"), newMailbox(), newMailbox()
	cfg := twoClients(s, box, ops, t.TempDir())
	for i := range cfg.Subscriptions {
		cfg.Subscriptions[i].Select = []pipeline.Selector{{CSS: "main"}}
	}
	runs(t, cfg)
	s.set("<p>redesigned</p>")
	cfg.Checks = 12
	runs(t, cfg)
	if got := box.take(); len(got) != 0 {
		t.Errorf("notifications %+v", got)
	}
	if got := told(ops, pipeline.HealthSelectorGone); len(got) != 1 {
		t.Errorf("%d selector_gone events, want 1", len(got))
	}
	s.set("<main>out of stock</main>")
	cfg.Checks = 1
	runs(t, cfg)
	if got := told(ops, pipeline.HealthRecovered); len(got) != 1 {
		t.Errorf("%d recovered events, want 1", len(got))
	}
}

// watchingMany makes cfg watch n new sites, and nothing else, for "out".
func watchingMany(t *testing.T, cfg *Config, n int) (sites []*site) {
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
	sites := watchingMany(t, &cfg, 4)
	runs(t, cfg)
	for _, s := range sites {
		s.answer(http.StatusBadGateway)
	}
	cfg.Checks = 14
	runs(t, cfg)
	for _, s := range sites {
		s.answer(http.StatusOK)
		s.set("<p>out of stock</p>")
	}
	cfg.Checks = 1
	runs(t, cfg)
	if got := box.take(); len(got) != len(sites) {
		t.Errorf("%d notifications, want one of each page: %+v", len(got), got)
	}
	if got := told(ops, pipeline.HealthOffline); len(got) != 1 {
		t.Errorf("%d offline events, want 1", len(got))
	}
	if got := told(ops, pipeline.HealthExpired); len(got) != 0 {
		t.Errorf("expired: %+v", got)
	}
}

func TestCancelDuringAFetch(t *testing.T) {
	s, box := newSite(t, "<p>in stock</p>"), newMailbox()
	cfg := watching(s, box, t.TempDir(), "stock")
	cfg.Checks, cfg.Drain = 0, time.Minute
	held, release := make(chan struct{}), make(chan struct{})
	s.Config.Handler = holding(s.Config.Handler, held, release)
	r, stop := lives(t, cfg)
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
	<-box.came
	got := box.take()
	if len(got) != 1 || len(got[0].Diffs) != 1 || got[0].Diffs[0].Event != pipeline.Removed {
		t.Errorf("notifications %+v, want only that stock is removed", got)
	}
	close(release)
}

// holding tells held of each request and serves it once release lets it.
func holding(next http.Handler, held chan<- struct{}, release <-chan struct{}) http.Handler {
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
	runs(t, cfg)
	box.fail = func(pipeline.Notification) error { return pipeline.Gone(errors.New("410 Gone")) }
	s.set("<p>none</p>")
	runs(t, cfg)
	if got := told(ops, pipeline.HealthReceiverExpired); len(got) != 1 || got[0].Health.Receiver.Sink != "box" {
		t.Fatalf("receiver_expired events: %+v", got)
	}
	box.fail = nil

	look := cfg
	look.Mode, look.Checks = ModeCommands, 0
	r, stop := lives(t, look)
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
	again.Mode = ModeDeliver
	r, stop = lives(t, again)
	if n, err := r.Replay(t.Context(), flow.DeadFilter{Sink: "box"}); n != 1 || err != nil {
		t.Fatalf("Replay: %d, %v", n, err)
	}
	r.Finish()
	stop()
	if got := box.take(); len(got) != 1 || got[0].ID != letters[0].Addressed.Notification.ID {
		t.Errorf("replayed %+v", got)
	}
	if got := told(ops, pipeline.HealthReceiverRecovered); len(got) != 1 {
		t.Errorf("%d receiver_recovered events, want 1", len(got))
	}
	// Its subscription goes on, from a fresh baseline.
	runs(t, cfg)
	s.set("<p>in stock</p>")
	runs(t, cfg)
	if got := box.take(); len(got) != 1 {
		t.Errorf("%d notifications after the receiver opened again, want 1", len(got))
	}
}

func TestReload(t *testing.T) {
	s, box, other := newSite(t, "<p>in stock</p>"), newMailbox(), newMailbox()
	cfg := watching(s, box, t.TempDir(), "stock")
	cfg.Checks = 0
	r, stop := lives(t, cfg)
	defer stop()
	checked := func() bool { return r.Summary().Versions > 0 }
	waitFor(t, checked)

	bad := cfg
	bad.Health = []string{"nobody"}
	if _, err := r.Reload(t.Context(), bad); err == nil {
		t.Error("a configuration that names no sink was taken")
	}
	next := cfg
	next.Sinks = map[string]pipeline.Sink{"box": box, "other": other}
	changed := cfg.Subscriptions[0]
	changed.Sinks = []string{"other"}
	next.Subscriptions = []pipeline.Subscription{changed}
	lines, err := r.Reload(t.Context(), next)
	if want := []string{`subscription changed: ` + s.URL + `/a for client "default"`, "sink added: other"}; err != nil || !slices.Equal(lines, want) {
		t.Errorf("Reload: %q, %v; want %q", lines, err, want)
	}
	settled(t, r)
	s.set("<p>none</p>")
	<-other.came
	if got := box.take(); len(got) != 0 {
		t.Errorf("the sink of the old configuration got %+v", got)
	}
	next.Subscriptions = nil
	if _, err := r.Reload(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		l, err := r.List(t.Context(), inspect.ListFilter{})
		return err == nil && len(l.Pages) == 0
	})
}

// TestReloadTellsOfTheNextStart: what does not take effect at once, and nothing of what did
// not change.
func TestReloadTellsOfTheNextStart(t *testing.T) {
	wait := pipeline.SourceFunc(func(ctx context.Context, _ pipeline.Emit) error { <-ctx.Done(); return nil })
	cfg := Config{Sources: map[string]pipeline.Source{"crawler": wait}}
	r, stop := lives(t, cfg)
	defer stop()
	later := func(what ...string) (lines []string) {
		for _, w := range what {
			lines = append(lines, w+" changed: this takes effect with the next start")
		}
		return lines
	}
	for _, step := range []struct {
		change func()
		want   []string
	}{
		{func() { cfg.Sources = map[string]pipeline.Source{"crawler": wait} }, nil},
		{func() { cfg.Name, cfg.Drain, cfg.Checks, cfg.Every = "n", time.Second, 7, &instantly }, later("name", "checks", "every", "drain")},
		{func() { cfg.Sources = map[string]pipeline.Source{"other": wait} }, later("sources")},
	} {
		step.change()
		if lines, err := r.Reload(t.Context(), cfg); err != nil || !slices.Equal(lines, step.want) {
			t.Errorf("got %q, %v, want %q", lines, err, step.want)
		}
	}
}

// settled waits until the commands before it are carried out.
func settled(t *testing.T, r *Router) {
	t.Helper()
	err := r.Cancel(t.Context(), r.cfg.Subscriptions[0].URL, "nobody")
	if refused, ok := errors.AsType[*pipeline.Refusal](err); !ok || refused.Code != pipeline.CodeNotFound {
		t.Fatalf("Cancel: %v", err)
	}
}

func TestListener(t *testing.T) {
	var heard []string
	hear := func(what string) func(context.Context, pipeline.Notification) error {
		return func(context.Context, pipeline.Notification) error { heard = append(heard, what); return nil }
	}
	l := Listener{OnNotification: hear("notification"), OnTimeout: hear("timeout")}
	for _, n := range []pipeline.Notification{{Status: pipeline.StatusOK}, {Status: pipeline.StatusTimeout}, {Status: "failing", Type: pipeline.NotificationTypeHealth}} {
		if err := l.Deliver(t.Context(), n); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"notification", "timeout"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

func TestRoutersShareAStore(t *testing.T) {
	store, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	s := newSite(t, "<p>in stock</p>")
	boxes := map[string]*mailbox{"first": newMailbox(), "second": newMailbox()}
	run := func(name string) {
		cfg := watching(s, boxes[name], "", "stock")
		cfg.Store, cfg.Name = store, name
		runs(t, cfg)
	}
	run("first")
	s.set("<p>none</p>")
	run("first")
	run("second") // knows nothing of what the first saw
	s.set("<p>in stock</p>")
	run("second")
	if got := len(boxes["first"].take()); got != 1 {
		t.Errorf("the first got %d notifications, want 1", got)
	}
	if got := len(boxes["second"].take()); got != 1 {
		t.Errorf("the second got %d notifications, want 1", got)
	}
}
