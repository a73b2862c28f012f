package router_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/pipeline/registry"
)

// blockingSink is a Transport that is closed, but Close of which returns only when it is released.
type blockingSink struct {
	*local.Transport
	closed, release chan struct{}
}

func (h blockingSink) Close() error {
	err := h.Transport.Close()
	close(h.closed)
	<-h.release
	return err
}

// TestReadsWhileTheTransportCloses: who looks then is told that the Router has stopped.
func TestReadsWhileTheTransportCloses(t *testing.T) {
	transport, err := local.Open(local.Config{Topics: vokter.Topology()})
	if err != nil {
		t.Fatal(err)
	}
	h := blockingSink{transport, make(chan struct{}), make(chan struct{})}
	r, stop := startRouter(t, vokter.Config{Transport: h})
	r.Finish()
	<-h.closed
	ctx, page := t.Context(), "https://example.com/"
	_, list := r.List(ctx, inspect.ListFilter{})
	_, explain := r.Explain(ctx, page, inspect.ExplainFilter{})
	_, letters := r.DeadLetters(ctx, flow.DeadFilter{})
	_, replay := r.Replay(ctx, flow.DeadFilter{})
	for what, err := range map[string]error{
		"List": list, "Explain": explain, "DeadLetters": letters, "Replay": replay,
		"Backup": r.Backup(ctx, new(bytes.Buffer)), "Cancel": r.Cancel(ctx, page, ""),
	} {
		if !errors.Is(err, vokter.ErrStopped) {
			t.Errorf("%s: %v, want ErrStopped", what, err)
		}
	}
	close(h.release)
	stop()
}

// closeCountingSink is a sink that counts how often it is closed.
type closeCountingSink struct {
	pipeline.SinkFunc
	closed *atomic.Int32
}

func (c closeCountingSink) Close() error { c.closed.Add(1); return nil }

// TestSinksAreClosedHoweverRunEnds: also where delivery never begins.
func TestSinksAreClosedHoweverRunEnds(t *testing.T) {
	dir := t.TempDir()
	_, stop := startRouter(t, vokter.Config{Dir: dir})
	defer stop()
	for name, cfg := range map[string]vokter.Config{
		"in order": {}, "in use": {Dir: dir}, "commands": {Mode: vokter.ModeCommands}, "deliver": {Mode: vokter.ModeDeliver},
	} {
		var n atomic.Int32
		sink := closeCountingSink{func(context.Context, pipeline.Notification) error { return nil }, &n}
		cfg.Sinks = map[string]pipeline.Sink{"box": registry.LimitRate(sink, 1, 1)}
		r, err := vokter.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r.Finish()
		if err := r.Run(t.Context()); (err != nil) != (name == "in use") {
			t.Errorf("%s: %v", name, err)
		}
		if n.Load() != 1 {
			t.Errorf("%s: closed %d times, want 1", name, n.Load())
		}
	}
}

// stuckTransport holds on to what it has: its disk takes no commit until released.
type stuckTransport struct {
	flow.Transport
	released chan struct{}
}

func (stuckTransport) Idle() bool { return false }

func (s stuckTransport) Close() error {
	<-s.released
	return s.Transport.Close()
}

// TestAStuckStoreEnds: Run ends within its limits though what is below it does not, and says
// what to do.
func TestAStuckStoreEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, err := local.Open(local.Config{Topics: vokter.Topology()})
		if err != nil {
			t.Fatal(err)
		}
		stuck := stuckTransport{inner, make(chan struct{})}
		defer close(stuck.released)
		r, err := vokter.New(vokter.Config{Transport: stuck})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-r.Running()
			cancel()
		}()
		began := time.Now()
		if err := r.Run(ctx); err == nil || !strings.Contains(err.Error(), "see that it answers") {
			t.Errorf("got %v, want what to do", err)
		}
		if d := time.Since(began); d > 25*time.Second {
			t.Errorf("Run ended after %v", d)
		}
	})
}

// runAndStop runs cfg, while during is at work beside it, and fails if that takes longer than
// limit.
func runAndStop(t *testing.T, cfg vokter.Config, limit time.Duration, during func(context.Context, *vokter.Router)) error {
	t.Helper()
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("too long"))
	defer cancel()
	if during != nil {
		go func() {
			<-r.Running()
			during(ctx, r)
		}()
	}
	err = r.Run(ctx)
	if ctx.Err() != nil {
		t.Errorf("Run did not end within %v", limit)
	}
	return err
}

// TestChecksOfNothingEnd: a page that was given up earlier is not waited for.
func TestChecksOfNothingEnd(t *testing.T) {
	s := newSite(t, "")
	s.answer(http.StatusNotFound)
	cfg := watchConfig(s, newMailbox(), t.TempDir(), "argus")
	cfg.Expire.After, cfg.Expire.Retry = 1, -1
	runToEnd(t, cfg)
	if err := runAndStop(t, cfg, 5*time.Second, nil); err != nil {
		t.Error(err)
	}
}

// TestChecksEndThoughRequestsWait: pages that everybody left while their requests waited
// for the host's turn do not hold the end up.
func TestChecksEndThoughRequestsWait(t *testing.T) {
	s := newSite(t, "<p>Zeus.</p>")
	cfg := watchConfig(s, newMailbox(), "", "argus")
	cfg.Fetch.Rate, cfg.Fetch.Concurrency = 0.01, 1
	for i := range 3 {
		sub := cfg.Subscriptions[0]
		sub.URL = fmt.Sprint(s.URL, "/", i)
		cfg.Subscriptions = append(cfg.Subscriptions, sub)
	}
	if err := runAndStop(t, cfg, 5*time.Second, func(ctx context.Context, r *vokter.Router) {
		for _, sub := range cfg.Subscriptions {
			if err := r.Cancel(ctx, sub.URL, "default"); err != nil {
				t.Error(err)
			}
		}
	}); err != nil {
		t.Error(err)
	}
}

// TestDrainOfAFailingReceiverEnds: one that is retried every few seconds is given up
// after the horizon, not after days.
func TestDrainOfAFailingReceiverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		page := &pagesFetcher{bodies: []string{"<p>Zeus.</p>", "<p>Argus.</p>"}}
		err := runAndStop(t, vokter.Config{
			Sinks: map[string]pipeline.Sink{"box": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error {
				attempts++
				return errors.New("not now")
			})},
			Subscriptions: []pipeline.Subscription{{URL: "https://example.com/", Keywords: []string{"Argus"}, Sinks: []string{"box"}}},
			Fetchers:      []pipeline.Fetcher{page}, Checks: 2, Every: &zeroInterval,
			Delivery: vokter.DeliveryConfig{Retry: []time.Duration{5 * time.Second}},
		}, 5*time.Minute, nil)
		if err == nil || attempts < 5 {
			t.Errorf("err %v after %d attempts; want the loss to be told after 30 s of retries", err, attempts)
		}
	})
}

// TestDrainLeavesWhatARateHolds: neither a signal nor the end of a number of checks waits for an
// attempt that may begin in an hour; of those that may soon, the end of the checks waits.
func TestDrainLeavesWhatARateHolds(t *testing.T) {
	for name, c := range map[string]struct {
		checks    int
		perSecond float64
		dir       bool
		want      int           // attempts
		within    time.Duration // from when it was to end, or began
	}{
		"checks":             {3, 1. / 3600, false, 1, time.Second},
		"checks, held a bit": {3, 0.1, false, 2, 11 * time.Second},
		"signal":             {0, 1. / 3600, true, 1, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts, second := 0, time.Second
				box := pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { attempts++; return nil })
				cfg := vokter.Config{
					Sinks:         map[string]pipeline.Sink{"box": registry.LimitRate(box, c.perSecond, 1)},
					Subscriptions: []pipeline.Subscription{{URL: "https://example.com/", Keywords: []string{"Argus"}, Sinks: []string{"box"}}},
					Fetchers:      []pipeline.Fetcher{&pagesFetcher{bodies: []string{"<p>Zeus.</p>", "<p>Argus.</p>", "<p>Zeus.</p>"}}},
					Checks:        c.checks, Every: &second,
				}
				if c.dir {
					cfg.Dir = t.TempDir()
				}
				r, err := vokter.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				if c.checks == 0 {
					time.AfterFunc(10*time.Second, func() { began = time.Now(); cancel() })
				}
				_ = r.Run(ctx) // without a directory the loss is an error
				cancel()
				if took := time.Since(began); attempts != c.want || took > c.within+3*time.Second {
					t.Errorf("%d attempts, ended after %s; want %d, within %s", attempts, took, c.want, c.within)
				}
			})
		})
	}
}

// pagesFetcher answers each fetch with the next body; the last one stays.
type pagesFetcher struct {
	bodies []string
	n      int
}

func (f *pagesFetcher) Schemes() []string { return []string{"https"} }

func (f *pagesFetcher) Fetch(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
	body := f.bodies[min(f.n, len(f.bodies)-1)]
	f.n++
	return pipeline.Response{
		URL: "https://example.com/", Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// TestAStopCancelsHandlers: a handler that goes on longer than a stop lets it is cancelled, which is
// no error, since its message is handled again at the next start.
func TestAStopCancelsHandlers(t *testing.T) {
	t.Parallel() // it waits for half of closeTimeout
	s := newSite(t, "<p>Zeus.</p>")
	cfg := watchConfig(s, newMailbox(), t.TempDir(), "argus")
	busy := make(chan struct{}, 1)
	cfg.Checks, cfg.Drain = 0, time.Millisecond
	cfg.WatermillMiddleware = []message.HandlerMiddleware{func(message.HandlerFunc) message.HandlerFunc {
		return func(m *message.Message) ([]*message.Message, error) {
			select {
			case busy <- struct{}{}:
			default:
			}
			<-m.Context().Done()
			return nil, context.Cause(m.Context())
		}
	}}
	start(t, cfg, func(*vokter.Router) { <-busy })
}

// TestChecksOnAFullDiskEnd: they are not waited for without end where nothing can be stored.
func TestChecksOnAFullDiskEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, err := local.Open(local.Config{Topics: vokter.Topology(), MinFree: 1 << 20, Free: func(string) (int64, error) { return 1000, nil }})
		if err != nil {
			t.Fatal(err)
		}
		cfg := vokter.Config{
			Transport: full, Checks: 1, Sinks: map[string]pipeline.Sink{"box": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil })},
			Subscriptions: []pipeline.Subscription{{URL: "https://example.com/", Sinks: []string{"box"}}},
		}
		r, err := vokter.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "has 1000 bytes free and needs 1048576: make room on it, or lower min_free") {
			t.Errorf("got %v, want what to do", err)
		}
	})
}

// TestAnswerInTheLastMoment: a receiver that answers while its attempt is cancelled at the end of the drain
// does not get the notification again after the next start.
func TestAnswerInTheLastMoment(t *testing.T) {
	s, dir := newSite(t, "<p>in stock</p>"), t.TempDir()
	got := make(chan string, 10)
	slow := pipeline.SinkFunc(func(ctx context.Context, n pipeline.Notification) error {
		got <- n.ID
		<-ctx.Done()
		return nil
	})
	cfg := watchConfig(s, slow, dir, "sold out")
	runToEnd(t, cfg)
	s.set("<p>sold out</p>")
	cfg.Checks, cfg.Drain = 0, 50*time.Millisecond
	_, stop := startRouter(t, cfg)
	<-got
	stop()
	box := newMailbox()
	runToEnd(t, watchConfig(s, box, dir, "sold out"))
	if n := len(box.take()); n != 0 || len(got) != 0 {
		t.Errorf("%d notifications came again", n)
	}
}
