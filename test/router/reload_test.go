package router_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
	httpsource "github.com/vokter/vokter/sources/http"
)

func TestReload(t *testing.T) {
	s, box, other := newSite(t, "<p>in stock</p>"), newMailbox(), newMailbox()
	cfg := watchConfig(s, box, t.TempDir(), "stock")
	cfg.Checks = 0
	r, stop := startRouter(t, cfg)
	defer stop()
	checked := func() bool { return r.Summary().Versions > 0 }
	waitFor(t, "a check", checked)

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
	waitForCommands(t, r, cfg.Subscriptions[0].URL)
	s.set("<p>none</p>")
	<-other.arrived
	if got := box.take(); len(got) != 0 {
		t.Errorf("the sink of the old configuration got %+v", got)
	}
	next.Subscriptions = nil
	if _, err := r.Reload(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the page to be gone", func() bool {
		l, err := r.List(t.Context(), inspect.ListFilter{})
		return err == nil && len(l.Pages) == 0
	})
}

// TestReloadKeepsFetchers: what can be fetched is what the Fetchers of New fetch.
func TestReloadKeepsFetchers(t *testing.T) {
	cfg := vokter.Config{Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Fetchers: []pipeline.Fetcher{gopherFetcher{}}}
	r, stop := startRouter(t, cfg)
	defer stop()
	cfg.Fetchers = nil
	cfg.Subscriptions = []pipeline.Subscription{{URL: "gopher://example.com/", Sinks: []string{"box"}}}
	if _, err := r.Reload(t.Context(), cfg); err != nil {
		t.Errorf("a page of the fetcher that is in use: %v", err)
	}
	cfg.Fetchers = []pipeline.Fetcher{gopherFetcher{}}
	r, stop = startRouter(t, vokter.Config{Sinks: cfg.Sinks})
	defer stop()
	if _, err := r.Reload(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "gopher") {
		t.Errorf("a page that nothing fetches: %v", err)
	}
}

// TestReloadTriesRefusedSubscriptionsAgain has a subscription made at run time in the way of one
// of the configuration.
func TestReloadTriesRefusedSubscriptionsAgain(t *testing.T) {
	s, box, log := newSite(t, "<p>in stock</p>"), newMailbox(), &lockedBuffer{}
	cfg := watchConfig(s, box, t.TempDir(), "stock")
	cfg.Checks, cfg.Logger = 0, slog.New(slog.NewTextHandler(log, nil))
	entry := cfg.Subscriptions[0]
	entry.Client = "rt"
	cfg.Subscriptions = nil
	r, stop := startRouter(t, cfg)
	defer stop()
	other := entry
	other.Keywords = []string{"other"}
	if err := r.Subscribe(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	cfg.Subscriptions = []pipeline.Subscription{entry}
	reload := func(want ...string) {
		t.Helper()
		if lines, err := r.Reload(t.Context(), cfg); err != nil || !slices.Equal(lines, want) {
			t.Errorf("Reload: %q, %v; want %q", lines, err, want)
		}
	}
	warned := func(n int) func() bool {
		return func() bool {
			return strings.Count(log.String(), `level=WARN msg="a subscription of the configuration is not in force"`) == n
		}
	}
	reload()
	waitFor(t, "a warning", warned(1))
	reload()
	waitFor(t, "a second warning", warned(2))
	if err := r.Cancel(t.Context(), entry.URL, "rt"); err != nil {
		t.Fatal(err)
	}
	reload(`subscription added: ` + s.URL + `/a for client "rt"`)
	keywords := func(want, state string) func() bool {
		return func() bool {
			l, err := r.List(t.Context(), inspect.ListFilter{})
			return err == nil && len(l.Pages) == 1 && len(l.Pages[0].Subscriptions) == 1 &&
				slices.Equal(l.Pages[0].Subscriptions[0].Keywords, []string{want}) && l.Pages[0].Subscriptions[0].State == state
		}
	}
	waitFor(t, "the subscription of the configuration", keywords("stock", inspect.StateActive))
	reload()

	// A paused one that is changed stays paused.
	if err := r.Pause(t.Context(), entry.URL, "rt", time.Time{}); err != nil {
		t.Fatal(err)
	}
	entry.Keywords = []string{"new"}
	cfg.Subscriptions = []pipeline.Subscription{entry}
	reload(`subscription changed: ` + s.URL + `/a for client "rt"; it stays paused until it is resumed`)
	waitFor(t, "the paused subscription to change", keywords("new", inspect.StatePaused))
	if err := r.Resume(t.Context(), entry.URL, "rt"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the subscription to resume", keywords("new", inspect.StateActive))
}

// TestReloadOfAnEditInPlace changes the lists and maps of the Config that New got, and gives it to Reload.
func TestReloadOfAnEditInPlace(t *testing.T) {
	box := newMailbox()
	cfg := vokter.Config{Sinks: map[string]pipeline.Sink{"box": box}, Subscriptions: []pipeline.Subscription{
		{URL: "http://127.0.0.1:1/a", Client: "c", Keywords: []string{"EUR"}, Sinks: []string{"box"}},
		{URL: "http://127.0.0.1:1/b", Client: "c", Keywords: []string{"EUR"}, Sinks: []string{"box"}},
	}, Delivery: vokter.DeliveryConfig{Retry: []time.Duration{time.Hour}}}
	r, stop := startRouter(t, cfg)
	defer stop()
	reload := func(lines ...string) {
		t.Helper()
		got, err := r.Reload(t.Context(), cfg)
		if err != nil || !slices.Equal(got, lines) {
			t.Errorf("Reload: %q, %v; want %q", got, err, lines)
		}
		waitForCommands(t, r, cfg.Subscriptions[0].URL)
	}
	cfg.Subscriptions[0].Keywords[0] = "USD"
	cfg.Subscriptions[1].Keywords = []string{"GBP"}
	cfg.Delivery.Retry[0] = time.Minute
	reload(`subscription changed: http://127.0.0.1:1/a for client "c"`, `subscription changed: http://127.0.0.1:1/b for client "c"`, "delivery changed")
	cfg.Sinks["other"] = box
	cfg.Subscriptions[1].Sinks[0] = "other"
	reload(`subscription changed: http://127.0.0.1:1/b for client "c"`, "sink added: other")
	waitFor(t, "the last lists", func() bool {
		l, err := r.List(t.Context(), inspect.ListFilter{})
		if err != nil || len(l.Pages) != 2 {
			return false
		}
		a, b := l.Pages[0].Subscriptions[0], l.Pages[1].Subscriptions[0]
		return slices.Equal(a.Keywords, []string{"USD"}) && slices.Equal(b.Keywords, []string{"GBP"}) && slices.Equal(b.Sinks, []string{"other"})
	})
}

// TestReloadTellsOfTheNextStart: what does not take effect at once, and nothing of what did
// not change.
func TestReloadTellsOfTheNextStart(t *testing.T) {
	wait := pipeline.SourceFunc(func(ctx context.Context, _ pipeline.Emit) error { <-ctx.Done(); return nil })
	cfg := vokter.Config{Sources: map[string]pipeline.Source{"crawler": wait}}
	r, stop := startRouter(t, cfg)
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
		{func() { cfg.Name, cfg.Drain, cfg.Checks, cfg.Every = "n", time.Second, 7, new(time.Minute) }, later("name", "checks", "every", "drain")},
		{func() { cfg.Sources = map[string]pipeline.Source{"other": wait} }, later("sources")},
	} {
		step.change()
		if lines, err := r.Reload(t.Context(), cfg); err != nil || !slices.Equal(lines, step.want) {
			t.Errorf("got %q, %v, want %q", lines, err, step.want)
		}
	}
}

// waitForCommands waits until the commands before it are carried out.
func waitForCommands(t *testing.T, r *vokter.Router, page string) {
	t.Helper()
	err := r.Cancel(t.Context(), page, "nobody")
	if refused, ok := errors.AsType[*flow.Refusal](err); !ok || refused.Code != flow.CodeNotFound {
		t.Fatalf("Cancel: %v", err)
	}
}

// TestOnlyKeepsSubscriptionsOfAKeptPage: with Only a document is kept beside the
// subscriptions of its page, also those of clients that this Config does not name.
func TestOnlyKeepsSubscriptionsOfAKeptPage(t *testing.T) {
	s, box, dir := newSite(t, "<p>Zeus.</p>"), newMailbox(), t.TempDir()
	cfg := watchConfig(s, box, dir, "argus")
	other := cfg
	other.Subscriptions = slices.Clone(cfg.Subscriptions)
	other.Subscriptions[0].Client = "other"
	page := cfg.Subscriptions[0].URL
	other.Only, cfg.Only = []string{page}, []string{page}
	runToEnd(t, other)
	cfg.Documents = []vokter.Document{{URL: page, Keep: true}}
	runToEnd(t, cfg)
	s.set("<p>Zeus. Argus.</p>")
	runToEnd(t, cfg)
	var clients []string
	for _, n := range box.take() {
		clients = append(clients, n.Client)
	}
	slices.Sort(clients)
	if want := []string{"default", "other"}; !slices.Equal(clients, want) {
		t.Errorf("%q were told, want %q", clients, want)
	}
	r, stop := startRouter(t, vokter.Config{Dir: dir, Mode: vokter.ModeCommands})
	defer stop()
	for _, client := range []string{"default", "other"} {
		if err := r.Cancel(t.Context(), page, client); err != nil {
			t.Error(err)
		}
	}
	l, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil || len(l.Pages) != 1 || l.Pages[0].URL != page {
		t.Errorf("got %+v, %v, want the page kept without subscriptions", l.Pages, err)
	}
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tokenSite answers each token with a text of its own, always under the same ETag, as careless
// websites do. Requests have "TOKEN if-none-match".
func tokenSite(t *testing.T) (srv *httptest.Server, requests chan string) {
	requests = make(chan string, 100)
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		requests <- token + " " + r.Header.Get("If-None-Match")
		w.Header().Set("ETag", `"same"`)
		w.Header().Set("Content-Type", "text/plain")
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Write([]byte("a page for " + token))
	}))
	t.Cleanup(srv.Close)
	return srv, requests
}

func withToken(srv *httptest.Server, token string) map[string]httpsource.Access {
	return map[string]httpsource.Access{"shop": {Hosts: []string{srv.URL}, Bearer: registry.NewSecret(token)}}
}

// TestChangedAccess: after a restart with other credentials the page is read again in full, and so
// the client is notified of what it holds for them.
func TestChangedAccess(t *testing.T) {
	srv, requests := tokenSite(t)
	m := newMailbox()
	cfg := vokter.Config{
		Dir: t.TempDir(), Checks: 1, Sinks: map[string]pipeline.Sink{"box": m},
		Fetch:         vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Rate: 1000},
		Subscriptions: []pipeline.Subscription{{URL: srv.URL + "/", Keywords: []string{"two"}, Sinks: []string{"box"}}},
	}
	for _, c := range []struct{ token, want string }{{"one", "one "}, {"one", `one "same"`}, {"two", "two "}, {"two", `two "same"`}} {
		cfg.Access = withToken(srv, c.token)
		runToEnd(t, cfg)
		if got := <-requests; got != c.want {
			t.Errorf("with token %s the request was %q, want %q", c.token, got, c.want)
		}
	}
	if got := m.take(); len(got) != 1 || len(got[0].Diffs) != 1 {
		t.Errorf("got %+v", got)
	}
}

// TestReloadedAccess: a reload changes the credentials of a running Router, and its lines name them
// without showing secrets.
func TestReloadedAccess(t *testing.T) {
	srv, requests := tokenSite(t)
	every := 10 * time.Millisecond
	cfg := vokter.Config{
		Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Every: &every,
		Fetch:         vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Rate: 1000},
		Subscriptions: []pipeline.Subscription{{URL: srv.URL + "/", Keywords: []string{"two"}, Sinks: []string{"box"}}},
		Access:        withToken(srv, "one"),
	}
	r, stop := startRouter(t, cfg)
	defer stop()
	if got := <-requests; got != "one " {
		t.Fatalf("the first request was %q", got)
	}
	cfg.Access = withToken(srv, "two")
	lines, err := r.Reload(t.Context(), cfg)
	if err != nil || len(lines) != 1 || lines[0] != "access changed: shop" {
		t.Fatalf("lines %q, %v", lines, err)
	}
	for got := range requests {
		if strings.HasPrefix(got, "two") {
			if got != "two " {
				t.Errorf("the first request with the new token was %q", got)
			}
			return
		}
	}
}
