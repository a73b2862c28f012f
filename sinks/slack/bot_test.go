package slack

import (
	"context"
	"net/netip"
	"runtime"
	"strings"
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

// laneFixture is a Delivery over a Store, with one lane and a clock that only a test moves.
type laneFixture struct {
	t       *testing.T
	store   *txtest.Store
	d       *sinks.Delivery
	results chan flow.Message

	mu  sync.Mutex
	now time.Time
}

// newLaneFixture starts a Delivery with the sinks that with returns, and a fake by its clock.
func newLaneFixture(t *testing.T, with func(*slackfake.Slack, func() time.Time) map[string]pipeline.Sink) (*laneFixture, *slackfake.Slack) {
	l := &laneFixture{t: t, store: txtest.New(), results: make(chan flow.Message, 100), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
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

func (l *laneFixture) clock() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// Post is that of a pipeline.Poster.
func (l *laneFixture) Post(_ context.Context, m flow.Message) error {
	l.results <- m
	return nil
}

func (l *laneFixture) handle(m flow.Message) {
	l.t.Helper()
	if err := l.store.Handle(l.t.Context(), l.d, m); err != nil {
		l.t.Fatalf("%s: %v", m.Type, err)
	}
}

// notify hands a notification of one document to the sink called sink.
func (l *laneFixture) notify(sink, id string) {
	l.t.Helper()
	n := sample()
	n.ID = id
	m, err := flow.Addressed{Receiver: pipeline.Receiver{Sink: sink}, Document: "doc", Notification: n}.Message()
	if err != nil {
		l.t.Fatal(err)
	}
	l.handle(m)
}

// handleResults handles the results of all attempts that are under way.
func (l *laneFixture) handleResults() {
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

// advance moves the clock, in steps of 100 ms, and does what is due.
func (l *laneFixture) advance(d time.Duration) {
	l.t.Helper()
	const step = 100 * time.Millisecond
	for ; d > 0; d -= step {
		l.mu.Lock()
		l.now = l.now.Add(step)
		l.mu.Unlock()
		for _, m := range l.store.Due(l.clock()) {
			l.handle(m)
		}
		l.handleResults()
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
		l, fake := newLaneFixture(t, func(fake *slackfake.Slack, _ func() time.Time) map[string]pipeline.Sink {
			return map[string]pipeline.Sink{"a": bothKinds(fake, "C1")[way], "b": bothKinds(fake, "C2")[way]}
		})
		fake.Script("C1", slackfake.RateLimited("2"))
		begin := l.clock()
		l.notify("a", "N1")
		l.notify("b", "N2")
		l.handleResults()
		l.notify("a", "N3") // waits behind N1
		l.advance(1900 * time.Millisecond)
		l.notify("b", "N4")
		l.handleResults()
		if got := requests(fake, "C1"); len(got) != 1 {
			t.Fatalf("%s: after 1.9 s there are the requests %+v, want one", way, got)
		}
		if got := requests(fake, "C2"); len(got) != 2 || !got[0].At.Equal(begin) || got[1].At.Sub(begin) != 1900*time.Millisecond {
			t.Errorf("%s: the other channel has %+v", way, got)
		}
		l.advance(10 * time.Second)
		got := requests(fake, "C1")
		if len(got) != 3 || got[1].At.Sub(begin) < 2*time.Second || got[1].At.Sub(begin) > 8*time.Second || got[1].Error != "" || got[2].Error != "" {
			t.Errorf("%s: then the requests are %+v, want one more for each notification, after 2 s", way, got)
		}
	}
}

// TestNotOKInThePipeline: what Slack does not confirm is tried again until it does.
func TestNotOKInThePipeline(t *testing.T) {
	for _, way := range []string{"bot", "webhook"} {
		l, fake := newLaneFixture(t, func(fake *slackfake.Slack, _ func() time.Time) map[string]pipeline.Sink {
			return map[string]pipeline.Sink{"a": bothKinds(fake, "C1")[way]}
		})
		fake.Script("C1", slackfake.Answer{Status: 200, Body: `{"ok":false}`}, slackfake.Answer{Status: 200, Body: `{}`})
		l.notify("a", "N1")
		l.handleResults()
		l.advance(time.Minute)
		if got := len(requests(fake, "C1")); got != 3 || len(fake.Messages()) != 1 {
			t.Errorf("%s: %d requests, %d messages, want 3 and 1", way, got, len(fake.Messages()))
		}
	}
}

// TestThreadsInThePipeline: the thread of a document is remembered from one delivery to
// the next.
func TestThreadsInThePipeline(t *testing.T) {
	l, fake := newLaneFixture(t, func(fake *slackfake.Slack, clock func() time.Time) map[string]pipeline.Sink {
		return map[string]pipeline.Sink{"a": newSlack(Config{Token: registry.NewSecret(slackfake.Token), Channel: "#general", APIURL: fake.API(), Thread: true, Connection: localConnection}, clock)}
	})
	for _, id := range []string{"N1", "N2", "N3"} {
		l.notify("a", id)
		l.handleResults()
	}
	m := fake.Messages()
	if len(m) != 3 || m[0].Thread != "" || m[1].Thread != m[0].TS || m[2].Thread != m[0].TS || !m[1].Broadcast || m[2].Broadcast {
		t.Errorf("got %+v", m)
	}
}

// threadFixture is a bot that keeps threads, with a clock and what it noted.
type threadFixture struct {
	t    *testing.T
	fake *slackfake.Slack
	s    *Slack
	now  time.Time
	testAttempt
}

// localConnection reaches the servers of tests.
var localConnection = registry.Connection{Allow: []netip.Prefix{loopback}}

// newSlack returns the sink of c. now is the clock by which threads end and dates in answers are
// read; nil: the system's.
func newSlack(c Config, now func() time.Time) *Slack {
	s, err := New(c)
	if err != nil {
		panic(err)
	}
	if now != nil {
		s.sender.Now = now
	}
	return s
}

func newThreadFixture(t *testing.T) *threadFixture {
	th := &threadFixture{t: t, now: time.Date(2026, 1, 2, 23, 0, 0, 0, time.UTC), testAttempt: testAttempt{document: "doc"}}
	clock := func() time.Time { return th.now }
	th.fake = slackfake.Start(t, clock)
	th.s = newSlack(Config{Token: registry.NewSecret(slackfake.Token), Channel: "#general", APIURL: th.fake.API(), Thread: true, Connection: localConnection}, clock)
	return th
}

// deliverAfter delivers after d, and returns what was posted.
func (th *threadFixture) deliverAfter(d time.Duration) slackfake.Message {
	th.t.Helper()
	th.now = th.now.Add(d)
	if err := th.s.Deliver(pipeline.WithAttempt(th.t.Context(), &th.testAttempt), sample()); err != nil {
		th.t.Fatal(err)
	}
	all := th.fake.Messages()
	return all[len(all)-1]
}

func TestThreads(t *testing.T) {
	th := newThreadFixture(t)
	root := th.deliverAfter(0)
	if root.Thread != "" || root.Channel != "CGENERAL" {
		t.Fatalf("the first message is %+v", root)
	}
	if !strings.Contains(th.note, `"CGENERAL"`) || len(th.note) > pipeline.MaxNote {
		t.Errorf("noted is %s, without the ID that Slack told", th.note)
	}
	first, second := th.deliverAfter(time.Hour), th.deliverAfter(22*time.Hour)
	if first.Thread != root.TS || !first.Broadcast {
		t.Errorf("the first reply is %+v, want one to %s that is shown in the channel", first, root.TS)
	}
	if root.Asked != "#general" || first.Asked != "CGENERAL" {
		t.Errorf("posted to %s, then to %s, want the name, then the ID", root.Asked, first.Asked)
	}
	if second.Thread != root.TS || second.Broadcast {
		t.Errorf("the second reply is %+v, want one to %s alone", second, root.TS)
	}
	if next := th.deliverAfter(time.Hour); next.Thread != "" {
		t.Errorf("after a day it is %+v, want a new thread", next)
	} else if reply := th.deliverAfter(time.Hour); reply.Thread != next.TS || !reply.Broadcast {
		t.Errorf("the reply to that is %+v", reply)
	}
}

// TestThreadsOfOthers: what was noted for another channel, health events, and notes that
// cannot be read begin threads, or have none.
func TestThreadsOfOthers(t *testing.T) {
	th := newThreadFixture(t)
	th.deliverAfter(0)
	th.s.channel = "C2"
	if m := th.deliverAfter(time.Second); m.Thread != "" || m.Channel != "C2" {
		t.Errorf("in another channel it is %+v", m)
	}
	th.note = "{"
	if m := th.deliverAfter(time.Second); m.Thread != "" {
		t.Errorf("after a damaged note it is %+v", m)
	}
	th.document, th.note = "", ""
	if m := th.deliverAfter(time.Second); m.Thread != "" || th.note != "" {
		t.Errorf("without a document it is %+v, noted %q", m, th.note)
	}
	if err := th.s.Deliver(t.Context(), sample()); err != nil {
		t.Errorf("without an attempt: %v", err)
	}
}

// TestDeletedThread: Slack posts an answer to a deleted message at the top level without
// a word; the next thread begins there.
func TestDeletedThread(t *testing.T) {
	th := newThreadFixture(t)
	root := th.deliverAfter(0)
	th.fake.Delete(root.TS)
	again := th.deliverAfter(time.Minute)
	if again.Thread != "" {
		t.Fatalf("got %+v", again)
	}
	if m := th.deliverAfter(time.Minute); m.Thread != again.TS {
		t.Errorf("got %+v, want an answer to %s", m, again.TS)
	}
	if got := len(th.fake.Requests()); got != 3 {
		t.Errorf("%d requests, want 3", got)
	}
}

// TestLockedThread: a thread that takes no answers is left for a new one, in the same
// attempt. So is one in a channel whose name another one has by now.
func TestLockedThread(t *testing.T) {
	for _, word := range []string{"cannot_reply_to_message", "restricted_action_thread_locked", "thread_not_found", "is_archived", "channel_not_found"} {
		th := newThreadFixture(t)
		th.deliverAfter(0)
		th.fake.Script("#general", slackfake.Answer{Error: word})
		again := th.deliverAfter(time.Minute)
		if again.Thread != "" || len(th.fake.Requests()) != 3 {
			t.Fatalf("%s: got %+v after %d requests", word, again, len(th.fake.Requests()))
		}
		if m := th.deliverAfter(time.Minute); m.Thread != again.TS {
			t.Errorf("%s: got %+v, want an answer to %s", word, m, again.TS)
		}
	}
	// Where the new one fails, the old one is forgotten all the same.
	th := newThreadFixture(t)
	root := th.deliverAfter(0)
	th.fake.Lock(root.TS)
	th.fake.Script("#general", slackfake.Answer{Error: "cannot_reply_to_message"}, slackfake.RateLimited("1"))
	if err := th.s.Deliver(pipeline.WithAttempt(t.Context(), &th.testAttempt), sample()); err == nil || th.note != "" {
		t.Errorf("got %v, noted %q", err, th.note)
	}
}

// TestPlainInThread: a message without its layout stays in its thread.
func TestPlainInThread(t *testing.T) {
	th := newThreadFixture(t)
	root := th.deliverAfter(0)
	th.fake.Script("#general", slackfake.Answer{Error: "invalid_blocks"})
	if m := th.deliverAfter(time.Minute); m.Thread != root.TS || m.Blocks != nil || len(th.degraded) != 1 {
		t.Errorf("got %+v, degraded for %q", m, th.degraded)
	}
}
