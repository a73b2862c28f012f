package fetch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/test/txtest"
)

// fetcherFunc is a function that fetches http and https.
type fetcherFunc func(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error)

func (f fetcherFunc) Schemes() []string { return []string{"http", "https"} }
func (f fetcherFunc) Fetch(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	return f(ctx, r)
}

// bodyReader is a reader whose text is the body.
type bodyReader struct{}

func (bodyReader) ContentTypes() []string { return []string{"text/plain"} }
func (bodyReader) Read(_ context.Context, raw pipeline.Raw, _ pipeline.View) (pipeline.Text, error) {
	return pipeline.Text{Content: string(raw.Body)}, nil
}

func newResponse(body string, header ...string) (pipeline.Response, error) {
	h := http.Header{"Content-Type": {"text/plain"}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return pipeline.Response{Status: 200, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// outbox is a Publisher that keeps what it gets.
type outbox struct {
	mu    sync.Mutex
	calls [][]flow.Outcome
	trace []string
	// events are the health events, each with how many calls there were before it.
	events []publishedHealth
	err    error
}

type publishedHealth struct {
	pipeline.Health
	after int
}

func (o *outbox) Publish(_ context.Context, ms ...flow.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var call []flow.Outcome
	for _, m := range ms {
		if m.Topic == flow.TopicHealth {
			h, err := flow.HealthFrom(m)
			if err == nil && o.err == nil {
				o.events = append(o.events, publishedHealth{h, len(o.calls)})
			}
			return errors.Join(err, o.err)
		}
		out, err := flow.OutcomeFrom(m)
		if err != nil {
			return err
		}
		call = append(call, out)
		o.trace = append(o.trace, m.Trace)
	}
	o.calls = append(o.calls, call)
	return o.err
}

// takeOutcomes returns the first outcome of each call since the last take, by page.
func (o *outbox) takeOutcomes() map[string]flow.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := make(map[string]flow.Outcome)
	for _, c := range o.calls {
		m[c[0].Page] = c[0]
	}
	o.calls = nil
	return m
}

// testStage is a stage with what it needs.
type testStage struct {
	*Stage
	out   *outbox
	store *txtest.Store
	stop  context.CancelFunc
	ended chan error
}

// newStage returns a stage whose Config has what c lacks.
func newStage(c Config) *Stage {
	if c.Unsynced == nil {
		c.Unsynced = c.Publisher
	}
	if c.Owned == nil {
		c.Owned = func(string) bool { return true }
	}
	if c.MayLead == nil {
		c.MayLead = func(string, string) bool { return true }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Timeout, c.Concurrency, c.Rate = cmp.Or(c.Timeout, 30*time.Second), cmp.Or(c.Concurrency, 2), cmp.Or(c.Rate, 1)
	c.Room = func() <-chan struct{} { return nil }
	c.Reading = func(_ context.Context, _ string, read func()) error { read(); return nil }
	c.Logger = slog.New(slog.DiscardHandler)
	return New(c)
}

// startStage runs a stage until the test ends.
func startStage(t *testing.T, c Config, f fetcherFunc) *testStage {
	t.Helper()
	c.Readers = NewReaders(bodyReader{})
	return startStageWith(t, c, f)
}

// startStageWith is startStage with the readers of c.
func startStageWith(t *testing.T, c Config, f fetcherFunc) *testStage {
	t.Helper()
	b := &testStage{out: &outbox{}, store: txtest.New(), ended: make(chan error, 1)}
	c.Publisher, c.Fetchers = b.out, []pipeline.Fetcher{f}
	b.Stage = newStage(c)
	ctx, cancel := context.WithCancel(t.Context())
	b.stop = cancel
	go func() { b.ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-b.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		b.ended <- nil
	})
	return b
}

func newRequest(page string, check uint64) flow.Request {
	return flow.Request{Page: page, Incarnation: "i", Check: check, Nonce: "n", Documents: []flow.RequestDocument{{ID: "d"}}}
}

func (b *testStage) sendRequests(t *testing.T, reqs ...flow.Request) {
	t.Helper()
	for _, r := range reqs {
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		m := flow.Message{ID: fmt.Sprint(r.Page, r.Check), Type: flow.TypeRequest, Key: pageurl.Host(r.Page), Body: body,
			Trace: "trace-" + r.Page}
		if err := b.store.Handle(t.Context(), b.Stage, m); err != nil {
			t.Fatal(err)
		}
	}
}

var t0 = time.Date(2026, 9, 1, 10, 0, 0, 0, time.UTC)
