package delivery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

func TestDeliversInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		observe := func(o flow.Observation) { seen = append(seen, o.Kind+" "+o.ID+" "+o.Page) }
		s := &recorder{}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": s}, Observe: observe})
		for i := range 5 {
			r.notify("a", fmt.Sprint(i))
		}
		r.notify("a", "3")
		synctest.Wait()
		r.stop()
		if got, want := s.got(), "[0 1 2 3 4]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := seen[0], "delivered 0 https://example.com/"; len(seen) != 5 || got != want {
			t.Errorf("observed %q and %d in all, want %q and 5", got, len(seen), want)
		}
		if !r.d.Idle(0) {
			t.Error("not idle")
		}
	})
}

func TestFailingReceiverIsLoggedOncePerReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		answers := []error{errors.New("one"), errors.New("one"), fmt.Errorf("two%s", "\n"), nil}
		s := &recorder{do: func(context.Context, pipeline.Notification) error {
			err := answers[0]
			answers = answers[1:]
			return err
		}}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": s}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		r.notify("a", "x")
		synctest.Wait()
		if due, parked := r.d.Backlog(time.Second); due != 0 || parked != 1 {
			t.Errorf("backlog %d, %d within a second, want 0, 1", due, parked)
		}
		if due, parked := r.d.Backlog(time.Minute); due != 1 || parked != 0 {
			t.Errorf("backlog %d, %d within a minute, want 1, 0", due, parked)
		}
		time.Sleep(time.Hour)
		r.stop()
		for text, want := range map[string]int{"reason=one": 1, "reason=two": 1, "takes notifications again": 1} {
			if got := strings.Count(log.String(), text); got != want {
				t.Errorf("%q is logged %d times, want %d:\n%s", text, got, want, log.String())
			}
		}
	})
}

func TestDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{do: func(context.Context, pipeline.Notification) error { return failure.Permanent(errors.New("no way")) }}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": s}})
		r.notify("a", "x")
		synctest.Wait()
		r.stop()
		if len(r.dead) != 1 {
			t.Fatalf("%d dead letters, want 1", len(r.dead))
		}
		m := r.dead[0]
		var d flow.DeadLetter
		if err := json.Unmarshal(m.Body, &d); err != nil {
			t.Fatal(err)
		}
		if m.Topic != flow.TopicDead || m.Key != "a" || d.Reason != "no way" || d.Attempts != 1 || d.Addressed.Notification.ID != "x" {
			t.Errorf("got %+v: %s", m, m.Body)
		}
	})
}

func TestWhatCountsAsFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		sinks map[string]pipeline.Sink
		want  string
	}{
		"panic": {map[string]pipeline.Sink{"a": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { panic("ouch") })},
			"the sink panicked: ouch"},
		"no sink": {nil, `no sink named "a" is configured`},
		"gave up": {map[string]pipeline.Sink{"a": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return context.Canceled })},
			"the sink gave up: context canceled"},
		"hangs": {map[string]pipeline.Sink{"a": pipeline.SinkFunc(func(ctx context.Context, _ pipeline.Notification) error { <-ctx.Done(); return ctx.Err() })},
			"context deadline exceeded"},
		"ambiguous": {map[string]pipeline.Sink{"a": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return failure.Ambiguous(errors.New("reset")) })},
			"reset (it may have arrived)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newPoolFixture(t, txtest.New(), Config{Sinks: tt.sinks})
				r.notify("a", "x")
				time.Sleep(21 * time.Second)
				synctest.Wait()
				q := r.queue("a")
				r.stop()
				if q.Reason != tt.want || q.Tries == 0 || q.Pending() != 1 {
					t.Errorf("got %+v, want one pending and the reason %q", q, tt.want)
				}
			})
		})
	}
}

func TestShutdownDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := txtest.New()
		hang := &recorder{do: func(ctx context.Context, _ pipeline.Notification) error { <-ctx.Done(); return ctx.Err() }}
		r := newPoolFixture(t, store, Config{Sinks: map[string]pipeline.Sink{"a": hang}})
		r.notify("a", "x")
		synctest.Wait()
		r.stop()
		if q := r.queue("a"); q.Tries != 0 || !q.InFlight {
			t.Errorf("after the stop: %+v, want the attempt in flight and none counted", q)
		}
		// Long after, an attempt of another process is the first, whatever message comes first.
		time.Sleep(100 * time.Hour)
		d := NewDelivery(Config{Hand: func(Attempt) {}})
		if err := store.Handle(t.Context(), d, notification(t, "a", "", "y")); err != nil {
			t.Fatal(err)
		}
		if q := r.queue("a"); !q.TriedSince.Equal(time.Now()) {
			t.Errorf("first tried at %s, want now", q.TriedSince)
		}
		s := &recorder{}
		r = newPoolFixture(t, store, Config{Sinks: map[string]pipeline.Sink{"a": s}})
		synctest.Wait()
		r.stop()
		if got, want := s.got(), "[x y]"; got != want {
			t.Errorf("after the restart: got %s, want %s", got, want)
		}
	})
}

func TestWhatWasDeliveredAtShutdownIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := txtest.New()
		s := &recorder{do: func(ctx context.Context, _ pipeline.Notification) error { <-ctx.Done(); return nil }}
		r := newPoolFixture(t, store, Config{Sinks: map[string]pipeline.Sink{"a": s}})
		r.notify("a", "x")
		synctest.Wait()
		r.stop()
		if q := r.queue("a"); q.Pending() != 0 {
			t.Errorf("after the stop: %+v, want nothing pending", q)
		}
	})
}

func TestLostResultIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": s}})
		first := true
		r.dropsResult = func(flow.Message) bool { lost := first; first = false; return lost }
		r.notify("a", "x")
		time.Sleep(inFlightCheckAfter - time.Second)
		if got, want := s.got(), "[x]"; got != want {
			t.Errorf("early: got %s, want %s", got, want)
		}
		time.Sleep(time.Minute)
		r.stop()
		if got, want := s.got(), "[x x]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestBadMessages(t *testing.T) {
	d := NewDelivery(Config{})
	for name, m := range map[string]flow.Message{
		"body":     {Type: flow.TypeAddressed, Body: []byte("{")},
		"key":      {Type: flow.TypeAddressed, Key: "b", Body: []byte(`{"receiver":{"sink":"a"},"notification":{"id":"x"}}`)},
		"id":       {Type: flow.TypeAddressed, Key: "a", Body: []byte(`{"receiver":{"sink":"a"}}`)},
		"result":   {Type: typeResult, Body: []byte("[]")},
		"withdraw": {Type: flow.TypeWithdraw, Key: "a", Body: []byte("[]")},
		"no sub":   {Type: flow.TypeWithdraw, Key: "a", Body: []byte(`{"receiver":{"sink":"a"}}`)},
		"foreign":  {Type: "com.example.surprise", Source: "/crm", Key: "a"},
	} {
		err := txtest.New().Handle(t.Context(), d, m)
		if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent {
			t.Errorf("%s: got %v, want a permanent error", name, err)
		}
	}
	err := txtest.New().Handle(t.Context(), d, flow.Message{Type: "vokter.surprise.v1"})
	if class, _ := failure.ClassOf(err); class != failure.ClassBroken {
		t.Errorf("an unknown type: got %v, want an error that stops the Router", err)
	}
	if err := txtest.New().Handle(t.Context(), d, flow.Message{Type: flow.TypeWake, Key: "a"}); err != nil {
		t.Errorf("a wake of an unknown receiver: %v", err)
	}
}

func TestTraceReachesTheResult(t *testing.T) {
	store := txtest.New()
	var got Attempt
	d := NewDelivery(Config{Hand: func(a Attempt) { got = a }})
	m, err := flow.Addressed{Receiver: pipeline.Receiver{Sink: "a"}, Notification: pipeline.Notification{ID: "x"}}.Message()
	if err != nil {
		t.Fatal(err)
	}
	m.Trace = "00-1-2-01"
	if err := store.Handle(t.Context(), d, m); err != nil {
		t.Fatal(err)
	}
	if got := got.Result(nil).Trace; got != "00-1-2-01" {
		t.Errorf("got the trace %q", got)
	}
}

// retryOf is the message that tries now what waits for receiver about page.
func retryOf(t *testing.T, receiver, page string) flow.Message {
	t.Helper()
	b, err := json.Marshal(flow.RetryCommand{Page: page})
	if err != nil {
		t.Fatal(err)
	}
	return flow.Message{ID: "retry", Topic: flow.TopicNotifications, Key: receiver, Type: flow.TypeRetry, Body: b}
}

// TestRetry tries what waits at once, in order.
func TestRetry(t *testing.T) {
	for name, tt := range map[string]struct {
		receiver, page, want string
	}{
		"all":              {"a", "", "[1 1 2 3]"},
		"of the page":      {"a", "https://example.com/", "[1 1 2 3]"},
		"of another page":  {"a", "https://example.org/", "[1]"},
		"another receiver": {"b", "", "[1]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			sink := &recorder{do: func(context.Context, pipeline.Notification) error { return errors.New("503") }}
			r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": sink}, Policy: Policy{Retry: []time.Duration{time.Hour}}})
			for _, id := range []string{"1", "2", "3"} {
				r.notify("a", id)
			}
			synctest.Wait()
			if n, err := Waiting(r.store.Begin().State("a"), tt.page); err != nil || (n != 3) != (tt.page == "https://example.org/") {
				t.Errorf("%s: %d wait, %v", name, n, err)
			}
			sink.mu.Lock()
			sink.do = nil
			sink.mu.Unlock()
			r.send(retryOf(t, tt.receiver, tt.page))
			synctest.Wait()
			if got := sink.got(); got != tt.want {
				t.Errorf("%s: got %s, want %s", name, got, tt.want)
			}
			r.stop()
		})
	}
}

// TestPausedReceiver: its notifications wait, for days if need be, count for nothing that is due, and are delivered in
// their order when a retry comes after the pause.
func TestPausedReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &recorder{}
		sinks := map[string]pipeline.Sink{"a": sink}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: sinks, Policy: Policy{Receivers: map[string]pipeline.Receiving{"a": {Paused: true}}}})
		r.notify("a", "1")
		r.notify("a", "2")
		time.Sleep(5 * 24 * time.Hour)
		synctest.Wait()
		if due, parked := r.d.Backlog(time.Hour); due != 0 || parked != 2 || len(sink.got()) > len("[]") {
			t.Errorf("paused: %d are due, %d wait, %s came", due, parked, sink.got())
		}
		r.d.Reconfigure(sinks, Policy{})
		r.send(retryOf(t, "a", ""))
		synctest.Wait()
		if got, want := sink.got(), "[1 2]"; got != want {
			t.Errorf("resumed: got %s, want %s", got, want)
		}
		r.stop()
	})
}

// TestRetryWhileOneIsInFlight: exactly one further attempt follows at once, since the one in flight
// may have begun before the receiver was repaired.
func TestRetryWhileOneIsInFlight(t *testing.T) {
	s := &queueScript{t: t, now: t0, p: Policy{Retry: []time.Duration{time.Hour}}}
	s.apply(enqueued{s.now})
	s.apply(retryRequested{s.now})
	s.result(0, errors.New("401"))
	if !s.q.InFlight {
		t.Fatal("no attempt follows the one that was in flight")
	}
	s.result(0, errors.New("401"))
	if got := s.q.Due.Sub(s.now); s.q.InFlight || got != time.Hour {
		t.Errorf("after the second failure: in flight %v, due in %s", s.q.InFlight, got)
	}
}

// TestBacklogOfOthers: a receiver of another process does not count, until it comes back.
func TestBacklogOfOthers(t *testing.T) {
	owned := map[string]bool{"a": true, "b": true}
	d := NewDelivery(Config{Owned: func(r string) bool { return owned[r] }, Hand: func(Attempt) {}})
	for _, r := range []string{"a", "b"} {
		store := txtest.New()
		for _, id := range []string{r + "1", r + "2"} {
			if err := store.Handle(t.Context(), d, notification(t, r, "", id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		a    bool
		want int
	}{{true, 4}, {false, 2}, {true, 4}} {
		owned["a"] = c.a
		if due, parked := d.Backlog(time.Minute); due != c.want || parked != 0 {
			t.Errorf("a owned %v: %d due and %d parked, want %d due", c.a, due, parked, c.want)
		}
	}
}
