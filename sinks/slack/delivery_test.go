package slack

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks"
	"github.com/vokter/vokter/test/slackfake"
	"github.com/vokter/vokter/test/txtest"
)

// line is a Delivery over a Store, with one lane and a clock that only a test moves.
type line struct {
	t       *testing.T
	store   *txtest.Store
	d       *sinks.Delivery
	results chan flow.Message

	mu  sync.Mutex
	now time.Time
}

// newLine starts a Delivery with the sinks that with returns, and a fake by its clock.
func newLine(t *testing.T, with func(*slackfake.Slack, func() time.Time) map[string]pipeline.Sink) (*line, *slackfake.Slack) {
	l := &line{t: t, store: txtest.New(), results: make(chan flow.Message, 100), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	fake := slackfake.Start(t, l.clock)
	l.d = sinks.NewDelivery(sinks.Config{
		Sinks: with(fake, l.clock), Poster: l, Now: l.clock, Jitter: func() float64 { return 0 },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var pool sync.WaitGroup
	pool.Go(func() {
		if err := l.d.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		pool.Wait()
	})
	return l, fake
}

func (l *line) clock() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// Post is that of a pipeline.Poster.
func (l *line) Post(_ context.Context, m flow.Message) error {
	l.results <- m
	return nil
}

func (l *line) handle(m flow.Message) {
	l.t.Helper()
	if err := l.store.Handle(l.t.Context(), l.d, m); err != nil {
		l.t.Fatalf("%s: %v", m.Type, err)
	}
}

// notify hands a notification of one document to the sink called sink.
func (l *line) notify(sink, id string) {
	l.t.Helper()
	n := sample()
	n.ID = id
	m, err := flow.Addressed{Receiver: pipeline.Receiver{Sink: sink}, Document: "doc", Notification: n}.Message()
	if err != nil {
		l.t.Fatal(err)
	}
	l.handle(m)
}

// settle handles the results of all attempts that are under way.
func (l *line) settle() {
	l.t.Helper()
	for {
		select {
		case m := <-l.results:
			l.handle(m)
		default:
			if l.d.Idle(0) && len(l.results) == 0 {
				return
			}
			runtime.Gosched()
		}
	}
}

// pass moves the clock, in steps of 100 ms, and does what is due.
func (l *line) pass(d time.Duration) {
	l.t.Helper()
	const step = 100 * time.Millisecond
	for ; d > 0; d -= step {
		l.mu.Lock()
		l.now = l.now.Add(step)
		l.mu.Unlock()
		for _, m := range l.store.Due(l.clock()) {
			l.handle(m)
		}
		l.settle()
	}
}

func requests(fake *slackfake.Slack, channel string) (rs []slackfake.Request) {
	for _, r := range fake.Requests() {
		if r.Channel == channel {
			rs = append(rs, r)
		}
	}
	return rs
}

// TestRetryAfterInThePipeline: after 429 with Retry-After: 2 there is one attempt, not
// before that; another channel hears at once what it is to hear.
func TestRetryAfterInThePipeline(t *testing.T) {
	for _, way := range []string{"bot", "webhook"} {
		l, fake := newLine(t, func(fake *slackfake.Slack, _ func() time.Time) map[string]pipeline.Sink {
			return map[string]pipeline.Sink{"a": ways(fake, "C1")[way], "b": ways(fake, "C2")[way]}
		})
		fake.Script("C1", slackfake.RateLimited("2"))
		begin := l.clock()
		l.notify("a", "N1")
		l.notify("b", "N2")
		l.settle()
		l.notify("a", "N3") // waits behind N1
		l.pass(1900 * time.Millisecond)
		l.notify("b", "N4")
		l.settle()
		if got := requests(fake, "C1"); len(got) != 1 {
			t.Fatalf("%s: after 1.9 s there are the requests %+v, want one", way, got)
		}
		if got := requests(fake, "C2"); len(got) != 2 || !got[0].At.Equal(begin) || got[1].At.Sub(begin) != 1900*time.Millisecond {
			t.Errorf("%s: the other channel has %+v", way, got)
		}
		l.pass(10 * time.Second)
		got := requests(fake, "C1")
		if len(got) != 3 || got[1].At.Sub(begin) < 2*time.Second || got[1].At.Sub(begin) > 8*time.Second || got[1].Error != "" || got[2].Error != "" {
			t.Errorf("%s: then the requests are %+v, want one more for each notification, after 2 s", way, got)
		}
	}
}

// TestNotOKInThePipeline: what Slack does not confirm is tried again until it does.
func TestNotOKInThePipeline(t *testing.T) {
	for _, way := range []string{"bot", "webhook"} {
		l, fake := newLine(t, func(fake *slackfake.Slack, _ func() time.Time) map[string]pipeline.Sink {
			return map[string]pipeline.Sink{"a": ways(fake, "C1")[way]}
		})
		fake.Script("C1", slackfake.Answer{Status: 200, Body: `{"ok":false}`}, slackfake.Answer{Status: 200, Body: `{}`})
		l.notify("a", "N1")
		l.settle()
		l.pass(time.Minute)
		if got := len(requests(fake, "C1")); got != 3 || len(fake.Messages()) != 1 {
			t.Errorf("%s: %d requests, %d messages, want 3 and 1", way, got, len(fake.Messages()))
		}
	}
}

// TestThreadsInThePipeline: the thread of a document is remembered from one delivery to
// the next.
func TestThreadsInThePipeline(t *testing.T) {
	l, fake := newLine(t, func(fake *slackfake.Slack, clock func() time.Time) map[string]pipeline.Sink {
		return map[string]pipeline.Sink{"a": made(Config{Token: registry.NewSecret(slackfake.Token), Channel: "#general", APIURL: fake.API(), Thread: true, Connection: local}, clock)}
	})
	for _, id := range []string{"N1", "N2", "N3"} {
		l.notify("a", id)
		l.settle()
	}
	m := fake.Messages()
	if len(m) != 3 || m[0].Thread != "" || m[1].Thread != m[0].TS || m[2].Thread != m[0].TS || !m[1].Broadcast || m[2].Broadcast {
		t.Errorf("got %+v", m)
	}
}
