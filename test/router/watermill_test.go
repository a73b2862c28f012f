package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// recordingMiddleware is a Watermill middleware that notes what it sees.
type recordingMiddleware struct {
	mu    sync.Mutex
	names map[string]int
	types map[string]int
	bad   []string
}

func newRecordingMiddleware() *recordingMiddleware {
	return &recordingMiddleware{names: make(map[string]int), types: make(map[string]int)}
}

func (w *recordingMiddleware) middleware(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		w.mu.Lock()
		typ := msg.Metadata.Get("ce_type")
		w.names[message.HandlerNameFromCtx(msg.Context())]++
		w.types[typ]++
		if typ == "" || typ != flow.TypeWake && msg.UUID == "" {
			w.bad = append(w.bad, message.HandlerNameFromCtx(msg.Context()))
		}
		if typ == flow.TypeChange && !json.Valid(msg.Payload) {
			w.bad = append(w.bad, "a change without a payload")
		}
		w.mu.Unlock()
		return next(msg)
	}
}

// checkSeen fails the test unless w saw the way of a change from the index to its delivery.
func (w *recordingMiddleware) checkSeen(t *testing.T, names ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if w.names[name] == 0 {
			t.Errorf("handler %q was not seen, but %v", name, w.names)
		}
	}
	for _, typ := range []string{flow.TypeChange, flow.TypeAddressed} {
		if w.types[typ] == 0 {
			t.Errorf("no message of type %q was seen, but %v", typ, w.types)
		}
	}
	if len(w.bad) > 0 {
		t.Errorf("came without UUID, type or payload: %v", w.bad)
	}
}

var everyStage = []string{
	"vokter.fetch.requests", "vokter.index.documents", "vokter.diff.snapshots", "vokter.match.subscriptions",
	"vokter.match.changes", "vokter.delivery.notifications",
}

// changingConfig makes a run of cfg that finds a change of s.
func changingConfig(s *site, cfg vokter.Config) vokter.Config {
	cfg.Checks = 2
	cfg.Middleware = map[string][]flow.Middleware{flow.GroupIndex: {func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			if m.Type == flow.TypeOutcome {
				s.set("<p>Zeus is out of stock</p>")
			}
			return next.Process(ctx, tx, m)
		})
	}}}
	return cfg
}

func TestWatermillMiddleware(t *testing.T) {
	s, box, w := newSite(t, "<p>Zeus is in stock</p>"), newMailbox(), newRecordingMiddleware()
	cfg := changingConfig(s, watchConfig(s, box, "", "out of stock"))
	var order []string
	var mu sync.Mutex
	note := func(name string) message.HandlerMiddleware {
		return func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				return next(msg)
			}
		}
	}
	failed := false
	once := func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			mu.Lock()
			fails := !failed && msg.Metadata.Get("ce_type") == flow.TypeChange
			failed = failed || fails
			mu.Unlock()
			if fails {
				return nil, errors.New("not now") // and the message comes again
			}
			return next(msg)
		}
	}
	cfg.WatermillMiddleware = []message.HandlerMiddleware{note("outer"), note("inner"), w.middleware, once}
	runToEnd(t, cfg)
	if got := box.take(); len(got) != 1 {
		t.Errorf("got %d notifications, want 1", len(got))
	}
	w.checkSeen(t, everyStage...)
	if i := slices.Index(order, "inner"); i < 1 || order[i-1] != "outer" && slices.Index(order, "outer") > i || !failed {
		t.Errorf("the middleware was called in the order %v, failed %t", order[:min(len(order), 10)], failed)
	}
}

// startSharedRouter is a message.Router that a program has already, with a handler of its own.
func startSharedRouter(t *testing.T) (mills *message.Router, w *recordingMiddleware, alive func(t *testing.T)) {
	t.Helper()
	mills, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	w = newRecordingMiddleware()
	mills.AddMiddleware(w.middleware)
	bus := gochannel.NewGoChannel(gochannel.Config{}, watermill.NopLogger{})
	got := make(chan struct{}, 1)
	mills.AddConsumerHandler("own", "own", bus, func(*message.Message) error { got <- struct{}{}; return nil })
	t.Cleanup(func() { mills.Close() })
	return mills, w, func(t *testing.T) {
		t.Helper()
		m := message.NewMessage("1", nil)
		m.Metadata.Set("ce_type", "own")
		if err := bus.Publish("own", m); err != nil {
			t.Fatal(err)
		}
		<-got
	}
}

func TestRouterOfTheProgram(t *testing.T) {
	mills, w, alive := startSharedRouter(t)
	ran := make(chan error, 1)
	go func() { ran <- mills.Run(t.Context()) }()
	for _, name := range []string{"", "", "second"} { // the same names again, once they are free
		s, box := newSite(t, "<p>Zeus is in stock</p>"), newMailbox()
		cfg := changingConfig(s, watchConfig(s, box, "", "out of stock"))
		cfg.Watermill, cfg.Name = mills, name
		runToEnd(t, cfg)
		if got := box.take(); len(got) != 1 {
			t.Errorf("got %d notifications, want 1", len(got))
		}
		alive(t)
	}
	w.checkSeen(t, append([]string{"own", "vokter.second.match.changes"}, everyStage...)...)
	if err := mills.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// A program ends its router and a Router with one context: what is under way is delivered.
func TestOneContextForBothRouters(t *testing.T) {
	mills, _, _ := startSharedRouter(t)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- mills.Run(ctx) }()
	s, box := newSite(t, "<p>Zeus is in stock</p>"), newMailbox()
	cfg := changingConfig(s, watchConfig(s, box, "", "out of stock"))
	cfg.Watermill, cfg.Checks = mills, 0
	base := cfg.Middleware[flow.GroupIndex]
	cfg.Middleware = map[string][]flow.Middleware{flow.GroupIndex: base, flow.GroupMatch: {func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(hctx context.Context, tx flow.Tx, m flow.Message) error {
			if m.Type == flow.TypeChange {
				cancel()
			}
			return next.Process(hctx, tx, m)
		})
	}}}
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	if got := box.take(); len(got) == 0 {
		t.Error("nothing was delivered once the context was done")
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

func TestRouterOfTheProgramEndsEarly(t *testing.T) {
	mills, _, _ := startSharedRouter(t)
	s := newSite(t, "<p>Zeus is in stock</p>")
	cfg := watchConfig(s, newMailbox(), "", "out of stock")
	cfg.Watermill, cfg.Checks, cfg.Every = mills, 0, nil
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "does not run yet") {
		t.Errorf("Ready while the router of the program does not run: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(t.Context()) }()
	go mills.Run(t.Context())
	<-r.Running()

	taken, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := taken.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Config.Name") {
		t.Errorf("two Routers with the same names: %v", err)
	}
	if err := mills.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "close it after Run has returned") {
		t.Errorf("Run, when the router of the program was closed: %v", err)
	}
	late, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := late.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "closed already") {
		t.Errorf("Run with a router that was closed: %v", err)
	}
	cfg.WatermillMiddleware = []message.HandlerMiddleware{nil}
	if _, err := vokter.New(cfg); err == nil {
		t.Error("a middleware that is nil was accepted")
	}
}

func TestHandleAndMiddleware(t *testing.T) {
	s, m, dir := newSite(t, "<p>a</p>"), newMailbox(), t.TempDir()
	cfg := watchConfig(s, m, dir, "argus")
	runToEnd(t, cfg)
	s.set("<p>a</p><p>argus panics</p>")
	var mu sync.Mutex
	var changes []flow.Change
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
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Handle("audit", flow.TopicChanges, flow.ProcessorFunc(func(_ context.Context, _ flow.Tx, msg flow.Message) error {
		var c flow.Change
		if err := json.Unmarshal(msg.Body, &c); err != nil {
			return failure.Permanent(err)
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

// TestTrace: the check that saw a change and the delivery of its notification are spans of one
// trace, and each span between them has its cause as its parent.
func TestTrace(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	page, box := "https://example.com/", newMailbox()
	_, stop := startRouter(t, vokter.Config{
		Sinks: map[string]pipeline.Sink{"box": box}, Every: &zeroInterval, TracerProvider: provider,
		Fetchers:      []pipeline.Fetcher{&pagesFetcher{bodies: []string{"<p>Zeus</p>", "<p>Zeus and Argus</p>"}}},
		Fetch:         vokter.FetchConfig{Rate: 1000},
		Subscriptions: []pipeline.Subscription{{URL: page, Keywords: []string{"Argus"}, Sinks: []string{"box"}}},
	})
	<-box.arrived
	stop()
	by := make(map[trace.SpanID]tracetest.SpanStub)
	var delivery tracetest.SpanStub
	for _, s := range spans.GetSpans() {
		by[s.SpanContext.SpanID()] = s
		if s.Name == "deliver" {
			delivery = s
		}
	}
	var names []string
	for s, known := delivery, true; known; s, known = by[s.Parent.SpanID()] {
		names = append(names, s.Name)
		if s.SpanContext.TraceID() != delivery.SpanContext.TraceID() {
			t.Errorf("%s is of another trace", s.Name)
		}
	}
	want := []string{"deliver", "match changes", "diff snapshots", "index documents", "check"}
	for i, name := range want {
		if i >= len(names) || names[i] != name {
			t.Fatalf("got %q, want them to begin with %q", names, want)
		}
	}
}
