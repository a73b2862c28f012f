package router_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/stages/index"
)

// blockingStart is a Transport that is over nothing until its Start ends.
type blockingStart struct {
	flow.Transport
	wiring chan flow.Wiring
	// end is what ends Start, besides its context.
	end    chan error
	reason atomic.Pointer[string]
	closed atomic.Bool
}

func newBlockingStart(t flow.Transport) *blockingStart {
	return &blockingStart{Transport: t, wiring: make(chan flow.Wiring, 1), end: make(chan error)}
}

func (s *blockingStart) Start(ctx context.Context, w flow.Wiring) error {
	s.wiring <- w
	select {
	case err := <-s.end:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *blockingStart) Ready() error {
	if reason := s.reason.Load(); reason != nil {
		return errors.New(*reason)
	}
	return nil
}

func (s *blockingStart) Close() error {
	s.closed.Store(true)
	if s.Transport == nil {
		return nil
	}
	return s.Transport.Close()
}

// TestStart runs over a transport that starts once its brokers answer.
func TestStart(t *testing.T) {
	s := newBlockingStart(sharedTransport(t))
	why := "no broker answers"
	s.reason.Store(&why)
	var fatal error
	r, err := vokter.New(vokter.Config{Transport: s, Dir: "cache", MinFree: 7, OnFatal: func(err error) { fatal = err }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	r.Handle("mine", flow.TopicChanges, flow.ProcessorFunc(func(context.Context, flow.Tx, flow.Message) error { return nil }))
	if err := r.Ready(); err == nil || err.Error() != "starting: no broker answers" {
		t.Errorf("before Run: %v", err)
	}
	go func() { ended <- r.Run(ctx) }()
	w := <-s.wiring
	if got := w.Topics[flow.TopicChanges].Groups; len(got) != 2 || got[1] != "mine" {
		t.Errorf("changes are read by %v, want the branch's group, too", got)
	}
	if !w.Topics[flow.TopicDecisions].Ephemeral || w.Dir != "cache" || w.MinFree != 7 || w.Grace <= 0 || w.Now == nil || w.Logger == nil {
		t.Errorf("the wiring is %+v", w)
	}
	if w.OnFatal(errors.New("disk")); fatal == nil {
		t.Error("OnFatal was not called")
	}
	if err := r.Ready(); err == nil || err.Error() != "starting: no broker answers" {
		t.Errorf("while it starts: %v", err)
	}
	s.reason.Store(nil)
	s.end <- nil
	<-r.Running()
	if err := r.Ready(); err != nil {
		t.Errorf("at work: %v", err)
	}
	why = "brokers are away"
	s.reason.Store(&why)
	if err := r.Ready(); err == nil || err.Error() != why {
		t.Errorf("at work without brokers: %v", err)
	}
	// Of several lanes one may be missing here: whoever has the page's decides.
	var refused *flow.Refusal
	if err := r.Cancel(ctx, "https://unknown.example/", "legal"); !errors.As(err, &refused) || refused.Code != flow.CodeNotFound {
		t.Errorf("a command while a lane is missing: %v", err)
	}
	stop()
	if err := <-ended; err != nil || !s.closed.Load() {
		t.Errorf("Run: %v, closed %v", err, s.closed.Load())
	}
}

// TestStartsThatEnd ends starts from all sides. The transport is closed each time.
func TestStartsThatEnd(t *testing.T) {
	refused := errors.New("the topic is too small")
	for name, c := range map[string]struct {
		end  func(r *vokter.Router, s *blockingStart, w flow.Wiring, stop func())
		want error
	}{
		"its context": {func(_ *vokter.Router, _ *blockingStart, _ flow.Wiring, stop func()) { stop() }, nil},
		"Finish":      {func(r *vokter.Router, _ *blockingStart, _ flow.Wiring, _ func()) { r.Finish() }, nil},
		"a refusal":   {func(_ *vokter.Router, s *blockingStart, _ flow.Wiring, _ func()) { s.end <- refused }, refused},
		"what breaks": {func(_ *vokter.Router, _ *blockingStart, w flow.Wiring, _ func()) { w.OnBroken(refused) }, refused},
		"break, twice": {func(_ *vokter.Router, _ *blockingStart, w flow.Wiring, _ func()) {
			w.OnBroken(refused)
			w.OnBroken(refused)
		}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBlockingStart(nil)
			r, err := vokter.New(vokter.Config{Transport: s})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			c.end(r, s, <-s.wiring, stop)
			if err := <-ended; !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("Run: %v, want %v", err, c.want)
			}
			if !s.closed.Load() {
				t.Error("the transport was not closed")
			}
			if err := r.Ready(); err == nil || strings.Contains(err.Error(), "starting") {
				t.Errorf("Ready at the end: %v", err)
			}
		})
	}
}

// countingTransport counts what is published durably.
type countingTransport struct {
	flow.Transport
	commands, waits atomic.Int64
}

func (w *countingTransport) Publish(ctx context.Context, ms ...flow.Message) error {
	if len(ms) > 0 && ms[0].Type == flow.TypeApply {
		w.commands.Add(int64(len(ms)))
		w.waits.Add(1)
	}
	return w.Transport.Publish(ctx, ms...)
}

// TestStartWaitsOnceForTheDisk: the commands of a long list are durable when the Router is at work, and do not
// wait for the disk one batch after the other.
func TestStartWaitsOnceForTheDisk(t *testing.T) {
	for _, pages := range []int{1, 256, 513} {
		w := &countingTransport{Transport: sharedTransport(t)}
		cfg := vokter.Config{Transport: w, Fetchers: []pipeline.Fetcher{&countingFetcher{}}, Sinks: map[string]pipeline.Sink{"box": newMailbox()}}
		for i := range pages {
			cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{
				URL: fmt.Sprint("https://example.com/", i), Keywords: []string{"Argus"}, Sinks: []string{"box"}, Interval: pipeline.Every(24 * time.Hour),
			})
		}
		_, stop := startRouter(t, cfg)
		if got := w.waits.Load(); got != 1 || w.commands.Load() == 0 {
			t.Errorf("%d pages: the start waited %d times for the disk, with %d commands", pages, got, w.commands.Load())
		}
		waitFor(t, "all pages", func() bool {
			n := 0
			for range w.States(flow.GroupIndex, "") {
				n++
			}
			return n == pages
		})
		stop()
	}
}

// slowScanTransport is a Transport whose pass over the pages goes on once one of them was checked.
type slowScanTransport struct {
	flow.Transport
	checked <-chan struct{}
	waited  atomic.Bool
}

func (s *slowScanTransport) States(group, after string) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		for key, st := range s.Transport.States(group, after) {
			if !yield(key, st) {
				return
			}
			if group == flow.GroupIndex && !s.waited.Swap(true) {
				<-s.checked
			}
		}
	}
}

// signallingFetcher serves pages and says that one was fetched.
type signallingFetcher struct {
	countingFetcher
	fetched chan struct{}
}

func (n *signallingFetcher) Fetch(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	select {
	case n.fetched <- struct{}{}:
	default:
	}
	return n.countingFetcher.Fetch(ctx, r)
}

// TestChecksGoOnDuringTheStart: pages that are due are checked while the start still reads pages.
func TestChecksGoOnDuringTheStart(t *testing.T) {
	const page = "https://example.com/"
	dir := t.TempDir()
	run := func(cfg vokter.Config, later time.Duration) (*slowScanTransport, func()) {
		now := func() time.Time { return time.Now().Add(later) }
		opened, err := local.Open(local.Config{Dir: dir, Topics: vokter.Topology(), Now: now})
		if err != nil {
			t.Fatal(err)
		}
		fetcher := &signallingFetcher{fetched: make(chan struct{}, 1)}
		s := &slowScanTransport{Transport: opened, checked: fetcher.fetched}
		cfg.Transport, cfg.Now, cfg.Fetchers, cfg.Sinks = s, now, []pipeline.Fetcher{fetcher}, map[string]pipeline.Sink{"box": newMailbox()}
		cfg.Fetch.MinInterval = time.Millisecond
		_, stop := startRouter(t, cfg)
		return s, stop
	}
	first, stop := run(vokter.Config{Origin: "others", Subscriptions: []pipeline.Subscription{
		{URL: page, Keywords: []string{"Argus"}, Sinks: []string{"box"}, Interval: pipeline.Every(100 * time.Millisecond)},
	}}, 0)
	waitFor(t, "a check", func() bool {
		p, err := index.Load(first.State(flow.GroupIndex, page))
		return err == nil && p.Records > 0
	})
	stop()
	second, stop := run(vokter.Config{Origin: "mine"}, time.Hour)
	defer stop()
	if !second.waited.Load() {
		t.Error("the start read no page")
	}
}

// start runs cfg until during returns.
func start(b testing.TB, cfg vokter.Config, during func(r *vokter.Router)) {
	r, err := vokter.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	during(r)
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// TestWrongGroups: Run refuses consumers that would take messages from a stage, and closes its transport.
func TestWrongGroups(t *testing.T) {
	nothing := flow.ProcessorFunc(func(context.Context, flow.Tx, flow.Message) error { return nil })
	for want, handle := range map[string]func(*vokter.Router){
		`"index" is not a free group name`: func(r *vokter.Router) { r.Handle(flow.GroupIndex, flow.TopicChanges, nothing) },
		`group "audit" consumes "changes" twice`: func(r *vokter.Router) {
			r.Handle("audit", flow.TopicChanges, nothing)
			r.Handle("audit", flow.TopicChanges, nothing)
		},
		`for "changes" is nil`: func(r *vokter.Router) { r.Handle("audit", flow.TopicChanges, nil) },
	} {
		dir := t.TempDir()
		transport, err := local.Open(local.Config{Dir: dir, Topics: vokter.Topology()})
		if err != nil {
			t.Fatal(err)
		}
		r, err := vokter.New(vokter.Config{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		handle(r)
		if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
		again, err := local.Open(local.Config{Dir: dir, Topics: vokter.Topology()})
		if err != nil {
			t.Errorf("the transport is still open: %v", err)
			continue
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}
