package router_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/local"
)

// TestMain lets more tests run at once than there are processors: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// site serves one page, which the test changes.
type site struct {
	*httptest.Server
	mu   sync.Mutex
	body string
	code int
	gets int
	// steps are met by other sites, too: an answer waits until all were asked.
	steps []*sync.WaitGroup
}

func newSite(t *testing.T, body string) *site {
	s := &site{body: body, code: http.StatusOK}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.awaitStep()
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

// keepInStep makes each of the next n answers of a site wait until all sites were asked as often.
func keepInStep(sites []*site, n int) {
	for range n {
		step := new(sync.WaitGroup)
		step.Add(len(sites))
		for _, s := range sites {
			s.mu.Lock()
			s.steps = append(s.steps, step)
			s.mu.Unlock()
		}
	}
}

func (s *site) awaitStep() {
	s.mu.Lock()
	var step *sync.WaitGroup
	if len(s.steps) > 0 {
		step, s.steps = s.steps[0], s.steps[1:]
	}
	s.mu.Unlock()
	if step != nil {
		step.Done()
		step.Wait()
	}
}

func (s *site) set(body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body = body
}

// answer makes s answer with code.
func (s *site) answer(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
}

// mailbox is a sink that keeps what it gets.
type mailbox struct {
	mu      sync.Mutex
	all     []pipeline.Notification
	arrived chan struct{}
	fail    func(n pipeline.Notification) error
}

func newMailbox() *mailbox { return &mailbox{arrived: make(chan struct{}, 1000)} }

func (m *mailbox) Deliver(_ context.Context, n pipeline.Notification) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(n); err != nil {
			return err
		}
	}
	m.all = append(m.all, n)
	m.arrived <- struct{}{}
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

var zeroInterval time.Duration

// watchConfig is a Config that watches s for keywords with one check per Run.
func watchConfig(s *site, m pipeline.Sink, dir string, keywords ...string) vokter.Config {
	return vokter.Config{
		Dir: dir, Sinks: map[string]pipeline.Sink{"box": m},
		Subscriptions: []pipeline.Subscription{{URL: s.URL + "/a", Keywords: keywords, Sinks: []string{"box"}}},
		Fetch:         vokter.FetchConfig{Concurrency: 8, Rate: 1000, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		Checks:        1, Every: &zeroInterval,
	}
}

// openTransport opens the embedded transport in dir, in memory without one, for a test that looks into it or writes
// to its topics as another program does. The Router that gets it closes it.
func openTransport(t *testing.T, dir string) *local.Transport {
	t.Helper()
	transport, err := local.Open(local.Config{Dir: dir, Topics: vokter.Topology()})
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

// runToEnd carries out cfg to its end, at which all checks may have failed.
func runToEnd(t *testing.T, cfg vokter.Config) *vokter.Router {
	t.Helper()
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil && !errors.Is(err, vokter.ErrNothingRead) {
		t.Fatalf("Run: %v", err)
	}
	return r
}

// startRouter starts cfg, which has no end, and returns when it runs; stop ends it.
func startRouter(t *testing.T, cfg vokter.Config) (r *vokter.Router, stop func()) {
	t.Helper()
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r, startInBackground(t, r)
}

// startInBackground returns when r runs; stop ends it.
func startInBackground(t *testing.T, r *vokter.Router) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-r.Running():
	case err := <-ended:
		t.Fatalf("Run: %v", err)
	}
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// waitFor waits until done returns true, which other goroutines bring about. It fails the test
// after a minute, or shortly before the deadline of the test run.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	if deadline, ok := t.Deadline(); ok && deadline.Add(-10*time.Second).Before(end) {
		end = deadline.Add(-10 * time.Second)
	}
	for !done() {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
