package router_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

func TestBackAndForthOverRestarts(t *testing.T) {
	s, m, dir := newSite(t, "<p>Zeus. In stock.</p>"), newMailbox(), t.TempDir()
	cfg := watchConfig(s, m, dir, "out of stock")
	seen := map[string]bool{}
	for i, step := range []struct {
		body string
		want string
	}{
		{"<p>Zeus. In stock.</p>", ""},
		{"<p>Zeus. Out of stock.</p>", "added"},
		{"<p>Zeus. Out of stock.</p>", ""},
		{"<p>Zeus. In stock.</p>", "removed"},
		{"<p>Zeus. Out of stock.</p>", "added"},
	} {
		s.set(step.body)
		runToEnd(t, cfg)
		got := m.take()
		if step.want == "" {
			if len(got) != 0 {
				t.Fatalf("step %d: got %+v, want nothing", i, got)
			}
			continue
		}
		if len(got) != 1 || len(got[0].Diffs) != 1 {
			t.Fatalf("step %d: got %+v, want one %s", i, got, step.want)
		}
		n, d := got[0], got[0].Diffs[0]
		if string(d.Event) != step.want || d.Keyword != "out of stock" || !strings.Contains(d.Text, "Out of") || seen[n.ID] {
			t.Errorf("step %d: got %+v, want %s under a new ID", i, n, step.want)
		}
		seen[n.ID] = true
	}
	if s.gets != 5 {
		t.Errorf("%d GETs for 5 checks", s.gets)
	}
}

func TestFailingSinkGetsItAgainUnderTheSameID(t *testing.T) {
	s, m := newSite(t, "<p>nothing</p>"), newMailbox()
	var ids []string
	m.fail = func(n pipeline.Notification) error {
		ids = append(ids, n.ID)
		if len(ids) < 3 {
			return errors.New("not now")
		}
		return nil
	}
	dir := t.TempDir()
	cfg := watchConfig(s, m, dir, "argus")
	cfg.Delivery.Retry = []time.Duration{time.Millisecond}
	runToEnd(t, cfg)
	s.set("<p>nothing</p><p>Argus</p>")
	r := runToEnd(t, cfg)
	if len(ids) != 3 || ids[0] != ids[1] || ids[1] != ids[2] || len(m.take()) != 1 {
		t.Errorf("attempts %q, want three under one ID and one delivery", ids)
	}
	if c := r.Summary().Counts; c.Delivered != 1 || c.Notifications != 1 {
		t.Errorf("summary %+v, want one notification and one delivery", c)
	}
}

func TestUndeliveredInMemoryIsAnError(t *testing.T) {
	s, m := newSite(t, "<p>nothing</p>"), newMailbox()
	m.fail = func(pipeline.Notification) error { s.set("<p>x</p>"); return errors.New("never") }
	cfg := watchConfig(s, m, "", "argus")
	cfg.Checks = 2
	cfg.Delivery.Retry = []time.Duration{time.Hour}
	cfg.Middleware = map[string][]flow.Middleware{flow.GroupIndex: {func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, msg flow.Message) error {
			if msg.Type == flow.TypeOutcome {
				s.set("<p>nothing</p><p>Argus</p>")
			}
			return next.Process(ctx, tx, msg)
		})
	}}}
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "1 notifications were not delivered and are lost") {
		t.Errorf("Run: %v, want an error that names the loss", err)
	}
}

func TestSubscribeAndCancelWhileRunning(t *testing.T) {
	s, m := newSite(t, "<p>old</p>"), newMailbox()
	cfg := watchConfig(s, m, "", "unused")
	cfg.Subscriptions, cfg.Checks = nil, 0
	every := time.Millisecond
	cfg.Every = &every
	r, stop := startRouter(t, cfg)
	defer stop()
	sub := pipeline.Subscription{URL: s.URL, Client: "c", Keywords: []string{"new"}, Sinks: []string{"box"}}
	if err := r.Subscribe(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	var refusal *flow.Refusal
	if err := r.Subscribe(t.Context(), sub); !errors.As(err, &refusal) || refusal.Code != flow.CodeConflict {
		t.Errorf("second Subscribe: %v, want code 5", err)
	}
	// The baseline must stand before the page changes, or the change is not seen as one.
	waitFor(t, "the baseline", func() bool { return r.Summary().Versions == 1 })
	s.set("<p>new</p>")
	<-m.arrived
	if got := m.take(); len(got) != 1 || got[0].Client != "c" || got[0].Diffs[0].Keyword != "new" {
		t.Errorf("got %+v", got)
	}
	if err := r.Cancel(t.Context(), s.URL, "c"); err != nil {
		t.Fatal(err)
	}
	if err := r.Cancel(t.Context(), s.URL, "c"); !errors.As(err, &refusal) || refusal.Code != flow.CodeNotFound {
		t.Errorf("second Cancel: %v, want code 7", err)
	}
	if err := r.Subscribe(t.Context(), pipeline.Subscription{URL: s.URL, Keywords: []string{"!!!"}, Sinks: []string{"nowhere"}}); err == nil ||
		!strings.Contains(err.Error(), "!!!") || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("invalid Subscribe: %v, want all that is wrong", err)
	}
}

func TestSecondRouterOnTheSameDirectory(t *testing.T) {
	s, dir := newSite(t, "<p>a</p>"), t.TempDir()
	cfg := watchConfig(s, newMailbox(), dir, "argus")
	cfg.Checks = 0
	_, stop := startRouter(t, cfg)
	defer stop()
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "is in use by this process") {
		t.Errorf("Run: %v, want that the directory is in use", err)
	}
}

func TestSeveralRoutersInOneProcess(t *testing.T) {
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			s, m, dir := newSite(t, "<p>a</p>"), newMailbox(), t.TempDir()
			runToEnd(t, watchConfig(s, m, dir, "argus"))
			s.set("<p>a</p><p>argus</p>")
			runToEnd(t, watchConfig(s, m, dir, "argus"))
			if got := m.take(); len(got) != 1 {
				t.Errorf("got %+v, want one notification", got)
			}
		})
	}
	wg.Wait()
}

func TestOriginsThatAreGoneEndTheirSubscriptions(t *testing.T) {
	s, m, dir := newSite(t, "<p>a</p>"), newMailbox(), t.TempDir()
	cfg := watchConfig(s, m, dir, "argus")
	cfg.Origin = "yaml"
	runToEnd(t, cfg)
	none := cfg
	none.Subscriptions = nil
	runToEnd(t, none)
	gets := s.gets
	s.set("<p>a</p><p>argus</p>")
	runToEnd(t, none)
	if s.gets != gets || len(m.take()) != 0 {
		t.Error("a page that nobody asks for any more was still watched")
	}
	runToEnd(t, cfg) // a fresh baseline
	if got := m.take(); len(got) != 0 {
		t.Errorf("got %+v from the first version of a new life", got)
	}
}

func TestHostThatWantsToBeLeftAloneEndsALimitedRun(t *testing.T) {
	s, m, dir := newSite(t, "<p>a</p>"), newMailbox(), t.TempDir()
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	cfg := watchConfig(s, m, dir, "argus")
	cfg.Checks = 2
	if d := runToEnd(t, cfg).Summary(); d.Checks != 1 || !strings.Contains(d.Documents[0].LastError, "asked to be left alone until") {
		t.Errorf("summary %+v, want one check and the reason why there was no other", d)
	}
	// The wish holds over a restart, and the run ends all the same.
	if d := runToEnd(t, cfg).Summary(); d.Checks != 0 || !strings.Contains(d.Documents[0].LastError, "asked to be left alone until") {
		t.Errorf("summary %+v, want no check and the reason", d)
	}
}

func TestCommandsAfterRunFailed(t *testing.T) {
	s := newSite(t, "<p>a</p>")
	cfg := watchConfig(s, newMailbox(), "/dev/null/nope", "argus")
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err == nil {
		t.Fatal("Run in /dev/null/nope succeeded")
	}
	if err := r.Subscribe(t.Context(), cfg.Subscriptions[0]); err == nil {
		t.Error("Subscribe succeeded although Run failed")
	}
	if err := r.Ready(); err == nil || err.Error() == "starting" {
		t.Errorf("Ready: %v, want why Run failed", err)
	}
}

func TestSinkThatDoesNotHeedItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		page := &pagesFetcher{bodies: []string{"<p>Zeus.</p>", "<p>Argus.</p>"}}
		err := runAndStop(t, vokter.Config{
			Sinks: map[string]pipeline.Sink{"box": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error {
				<-forever
				return nil
			})},
			Subscriptions: []pipeline.Subscription{{URL: "https://example.com/", Keywords: []string{"Argus"}, Sinks: []string{"box"}}},
			Fetchers:      []pipeline.Fetcher{page}, Checks: 2, Every: &zeroInterval,
		}, time.Hour, nil)
		if err == nil {
			t.Error("Run returned no error although a notification was not delivered")
		}
	})
}

func TestRoutersShareAStore(t *testing.T) {
	store, err := vokter.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	s := newSite(t, "<p>in stock</p>")
	boxes := map[string]*mailbox{"first": newMailbox(), "second": newMailbox()}
	run := func(name string) {
		cfg := watchConfig(s, boxes[name], "", "stock")
		cfg.Store, cfg.Name = store, name
		runToEnd(t, cfg)
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

func TestRetentionBoundsAStoreToo(t *testing.T) {
	store, err := vokter.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	var log bytes.Buffer
	cfg := watchConfig(newSite(t, "<p>in stock</p>"), newMailbox(), "", "stock")
	cfg.Store, cfg.Retention.Disk, cfg.Logger = store, 1e-9, slog.New(slog.NewTextHandler(&log, nil))
	runToEnd(t, cfg)
	if !strings.Contains(log.String(), "retention.disk allows") {
		t.Errorf("a store larger than retention.disk allows keeps all versions; the log: %s", &log)
	}
}

// hosts serves handler on n loopback ports of its own: n hosts.
func hosts(t *testing.T, n int, handler http.HandlerFunc) []string {
	t.Helper()
	s := &http.Server{Handler: handler}
	t.Cleanup(func() { s.Close() })
	var urls []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go s.Serve(l)
		urls = append(urls, "http://"+l.Addr().String()+"/")
	}
	return urls
}

func TestHangingHostsStopNobody(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var held atomic.Int64
	hanging := hosts(t, 64, func(_ http.ResponseWriter, r *http.Request) {
		held.Add(1)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	free := hosts(t, 1000, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintln(w, "free")
	})
	once := time.Hour // each page is checked once, and no check times out, however slow the machine is
	cfg := vokter.Config{
		Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Every: &once,
		Fetch: vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Timeout: once},
	}
	watch := func(url string) {
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{URL: url, Keywords: []string{"x"}, Sinks: []string{"box"}})
	}
	for _, u := range hanging {
		for i := range 3 { // several pages each, so that they hold all that a host may have
			watch(fmt.Sprintf("%s%d", u, i))
		}
	}
	for _, u := range free {
		watch(u)
	}
	r, stop := startRouter(t, cfg)
	defer stop()
	waitFor(t, "the pages of the hosts that answer", func() bool { return r.Summary().Versions == len(free) })
	if held.Load() < int64(len(hanging)) {
		t.Errorf("%d of %d hanging hosts were asked", held.Load(), len(hanging))
	}
	if c := r.Summary().Counts; c.Checks != len(free) || c.Failed != 0 {
		t.Errorf("summary %+v, want %d checks: nobody waits for those that hang", c, len(free))
	}
}

// upperReader reads plain text in capitals.
type upperReader struct{}

func (upperReader) ContentTypes() []string { return []string{"text/html"} }

func (upperReader) Read(_ context.Context, raw pipeline.Raw, _ pipeline.View) (pipeline.Text, error) {
	return pipeline.Text{Content: strings.ToUpper(string(raw.Body)) + "\n"}, nil
}

func TestReadersComeAndGoWhileItRuns(t *testing.T) {
	s, m := newSite(t, "old"), newMailbox()
	cfg := watchConfig(s, m, "", "NEW")
	cfg.Checks = 0
	cfg.Subscriptions[0].MatchCase = true
	cfg.Expire.After = -1 // it fails at once again and again, and must not end before the test looks
	r, stop := startRouter(t, cfg)
	defer stop()
	waitFor(t, "the baseline", func() bool { return r.Summary().Versions == 1 })
	r.RegisterReader(upperReader{})
	waitFor(t, "another check", func() bool { return r.Summary().Checks > 1 })
	s.set("new")
	<-m.arrived
	if got := m.take(); len(got) == 0 || got[0].Diffs[0].Text != "NEW" {
		t.Errorf("got %+v, want the text of the registered reader", got)
	}
	r.UnregisterReader("text/html")
	s.set("unread")
	waitFor(t, "a check without a reader", func() bool {
		d := r.Summary().Documents
		return len(d) == 1 && strings.HasPrefix(d[0].LastError, "there is no reader for pages of type \"text/html\"")
	})
}

// firstLetterStemmer stems a word to its first letter.
type firstLetterStemmer struct{}

func (firstLetterStemmer) Language() string        { return "en" }
func (firstLetterStemmer) Stem(word string) string { return word[:1] }

func TestStemmersComeAndGo(t *testing.T) {
	s, m, dir := newSite(t, "<p>nothing here</p>"), newMailbox(), t.TempDir()
	cfg := watchConfig(s, m, dir, "argus")
	cfg.Subscriptions[0].Stem, cfg.Subscriptions[0].Language = true, "en"
	runToEnd(t, cfg)
	s.set("<p>nothing here</p><p>apples</p>")
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.RegisterStemmer(firstLetterStemmer{})
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := m.take(); len(got) != 1 || got[0].Diffs[0].Text != "apples" {
		t.Errorf("got %+v, want apples, which the registered stemmer takes for argus", got)
	}
}
