package vokter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// site serves one page, which the test changes.
type site struct {
	*httptest.Server
	mu   sync.Mutex
	body string
	code int
	gets int
}

func newSite(t *testing.T, body string) *site {
	s := &site{body: body, code: http.StatusOK}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gets++
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(s.code)
		fmt.Fprint(w, s.body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) set(body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body = body
}

// mailbox is a sink that keeps what it gets.
type mailbox struct {
	mu   sync.Mutex
	all  []pipeline.Notification
	came chan struct{}
	fail func(n pipeline.Notification) error
}

func newMailbox() *mailbox { return &mailbox{came: make(chan struct{}, 1000)} }

func (m *mailbox) Deliver(_ context.Context, n pipeline.Notification) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(n); err != nil {
			return err
		}
	}
	m.all = append(m.all, n)
	m.came <- struct{}{}
	return nil
}

// take returns what came since the last call.
func (m *mailbox) take() []pipeline.Notification {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.all
	m.all = nil
	return all
}

var instantly time.Duration

// watching is a Config that watches s for keywords with one check per Run.
func watching(s *site, m pipeline.Sink, dir string, keywords ...string) Config {
	return Config{
		Dir: dir, Sinks: map[string]pipeline.Sink{"box": m},
		Subscriptions: []pipeline.Subscription{{URL: s.URL + "/a", Keywords: keywords, IgnoreCase: true, Sinks: []string{"box"}}},
		Fetch:         FetchConfig{Concurrency: 8, Rate: 1000, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		Checks:        1, Every: &instantly,
	}
}

// runs carries out cfg to its end.
func runs(t *testing.T, cfg Config) *Router {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatalf("Run: %v", err)
	}
	return r
}

// lives starts cfg, which has no end, and returns when it runs; stop ends it.
func lives(t *testing.T, cfg Config) (r *Router, stop func()) {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-r.Running():
	case err := <-ended:
		t.Fatalf("Run: %v", err)
	}
	return r, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestBackAndForthOverRestarts(t *testing.T) {
	s, m, dir := newSite(t, "<p>Zeus. In stock.</p>"), newMailbox(), t.TempDir()
	cfg := watching(s, m, dir, "out of stock")
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
		runs(t, cfg)
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
	cfg := watching(s, m, dir, "argus")
	cfg.Delivery.Retry = []time.Duration{time.Millisecond}
	runs(t, cfg)
	s.set("<p>nothing</p><p>Argus</p>")
	r := runs(t, cfg)
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
	cfg := watching(s, m, "", "argus")
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
	r, err := New(cfg)
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
	cfg := watching(s, m, "", "unused")
	cfg.Subscriptions, cfg.Checks = nil, 0
	every := time.Millisecond
	cfg.Every = &every
	r, stop := lives(t, cfg)
	defer stop()
	sub := pipeline.Subscription{URL: s.URL, Client: "c", Keywords: []string{"new"}, Sinks: []string{"box"}}
	if err := r.Subscribe(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	var refusal *pipeline.Refusal
	if err := r.Subscribe(t.Context(), sub); !errors.As(err, &refusal) || refusal.Code != pipeline.CodeConflict {
		t.Errorf("second Subscribe: %v, want code 5", err)
	}
	// The baseline must stand before the page changes, or the change is not seen as one.
	waitFor(t, func() bool { return r.Summary().Versions == 1 })
	s.set("<p>new</p>")
	<-m.came
	if got := m.take(); len(got) != 1 || got[0].Client != "c" || got[0].Diffs[0].Keyword != "new" {
		t.Errorf("got %+v", got)
	}
	if err := r.Cancel(t.Context(), s.URL, "c"); err != nil {
		t.Fatal(err)
	}
	if err := r.Cancel(t.Context(), s.URL, "c"); !errors.As(err, &refusal) || refusal.Code != pipeline.CodeNotFound {
		t.Errorf("second Cancel: %v, want code 7", err)
	}
	if err := r.Subscribe(t.Context(), pipeline.Subscription{URL: s.URL, Keywords: []string{"!!!"}, Sinks: []string{"nowhere"}}); err == nil ||
		!strings.Contains(err.Error(), "!!!") || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("invalid Subscribe: %v, want all that is wrong", err)
	}
}

// waitFor waits until done, which other goroutines bring about.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for !done() {
		select {
		case <-t.Context().Done():
			t.Fatal("it did not come about")
		case <-time.After(time.Millisecond):
		}
	}
}

func TestHandleAndMiddleware(t *testing.T) {
	s, m, dir := newSite(t, "<p>a</p>"), newMailbox(), t.TempDir()
	cfg := watching(s, m, dir, "argus")
	runs(t, cfg)
	s.set("<p>a</p><p>argus panics</p>")
	var mu sync.Mutex
	var changes []pipeline.Change
	attempts := 0
	cfg.Middleware = map[string][]flow.Middleware{flow.GroupMatch: {func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, msg flow.Message) error {
			if msg.Type == flow.TypeChange {
				mu.Lock()
				attempts++
				first := attempts == 1
				mu.Unlock()
				if first {
					if err := next.Process(ctx, tx, msg); err != nil {
						return err
					}
					return errors.New("after all was done")
				}
			}
			return next.Process(ctx, tx, msg)
		})
	}}}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Handle("audit", flow.TopicChanges, flow.ProcessorFunc(func(_ context.Context, _ flow.Tx, msg flow.Message) error {
		var c pipeline.Change
		if err := json.Unmarshal(msg.Body, &c); err != nil {
			return pipeline.Permanent(err)
		}
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, c)
		return nil
	}))
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(changes) != 1 || changes[0].Version != 2 || attempts != 2 {
		t.Errorf("branch saw %+v after %d attempts of match, want version 2 once and 2 attempts", changes, attempts)
	}
	if got := m.take(); len(got) != 1 {
		t.Errorf("got %+v, want one notification although its handler failed once after it emitted", got)
	}
}

func TestPanicGoesToTheDeadLetters(t *testing.T) {
	s, m, dir := newSite(t, "<p>a</p>"), newMailbox(), t.TempDir()
	cfg := watching(s, m, dir, "argus")
	runs(t, cfg)
	s.set("<p>a</p><p>argus</p>")
	var dead []flow.DeadLetter
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Handle("bad", flow.TopicChanges, flow.ProcessorFunc(func(context.Context, flow.Tx, flow.Message) error {
		panic("a branch with a fault")
	}))
	r.Handle("undertaker", flow.TopicDead, flow.ProcessorFunc(func(_ context.Context, _ flow.Tx, msg flow.Message) error {
		var d flow.DeadLetter
		if err := json.Unmarshal(msg.Body, &d); err != nil {
			return pipeline.Permanent(err)
		}
		dead = append(dead, d)
		return nil
	}))
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(dead) != 1 || dead[0].Group != "bad" || !strings.Contains(dead[0].Reason, "a branch with a fault") {
		t.Errorf("dead letters %+v, want the change with the panic as reason", dead)
	}
	if got := m.take(); len(got) != 1 {
		t.Errorf("got %+v: a branch must not disturb the stages", got)
	}
}

func TestSecondRouterOnTheSameDirectory(t *testing.T) {
	s, dir := newSite(t, "<p>a</p>"), t.TempDir()
	cfg := watching(s, newMailbox(), dir, "argus")
	cfg.Checks = 0
	_, stop := lives(t, cfg)
	defer stop()
	r, err := New(cfg)
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
			runs(t, watching(s, m, dir, "argus"))
			s.set("<p>a</p><p>argus</p>")
			runs(t, watching(s, m, dir, "argus"))
			if got := m.take(); len(got) != 1 {
				t.Errorf("got %+v, want one notification", got)
			}
		})
	}
	wg.Wait()
}

func TestConfigNamesAllThatIsWrong(t *testing.T) {
	_, err := New(Config{Subscriptions: []pipeline.Subscription{
		{URL: "example.com", Keywords: []string{"a"}, Sinks: []string{"x"}},
		{URL: "http://example.com/", Sinks: []string{"x"}},
	}, Checks: -1})
	for _, want := range []string{"absolute URL", "at least one keyword", `no sink is named "x"`, "checks must not be negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q in it", err, want)
		}
	}
}

func TestOriginsThatAreGoneEndTheirSubscriptions(t *testing.T) {
	s, m, dir := newSite(t, "<p>a</p>"), newMailbox(), t.TempDir()
	cfg := watching(s, m, dir, "argus")
	cfg.Origin = "yaml"
	runs(t, cfg)
	none := cfg
	none.Subscriptions = nil
	runs(t, none)
	gets := s.gets
	s.set("<p>a</p><p>argus</p>")
	runs(t, none)
	if s.gets != gets || len(m.take()) != 0 {
		t.Error("a page that nobody asks for any more was still watched")
	}
	runs(t, cfg) // a fresh baseline
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
	cfg := watching(s, m, dir, "argus")
	cfg.Checks = 2
	if d := runs(t, cfg).Summary(); d.Checks != 1 || !strings.Contains(d.Documents[0].LastError, "asked to be left alone until") {
		t.Errorf("summary %+v, want one check and the reason why there was no other", d)
	}
	// The wish holds over a restart, and the run ends all the same.
	if d := runs(t, cfg).Summary(); d.Checks != 0 || !strings.Contains(d.Documents[0].LastError, "asked to be left alone until") {
		t.Errorf("summary %+v, want no check and the reason", d)
	}
}

func TestCommandsAfterRunFailed(t *testing.T) {
	s := newSite(t, "<p>a</p>")
	cfg := watching(s, newMailbox(), "/dev/null/nope", "argus")
	r, err := New(cfg)
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
		err := ends(t, Config{
			Sinks: map[string]pipeline.Sink{"box": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error {
				<-forever
				return nil
			})},
			Subscriptions: []pipeline.Subscription{{URL: "https://example.com/", Keywords: []string{"Argus"}, Sinks: []string{"box"}}},
			Fetchers:      []pipeline.Fetcher{page}, Checks: 2, Every: &instantly,
		}, time.Hour, nil)
		if err == nil {
			t.Error("Run returned no error although a notification was not delivered")
		}
	})
}
