package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/txtest"
)

// TestLimitIsNoFailure puts attempts off between failures: the schedule does not move.
func TestLimitIsNoFailure(t *testing.T) {
	s := &queueScript{t: t, p: Policy{Retry: []time.Duration{time.Minute, time.Hour}}, now: t0}
	limit, down := failure.Limited(errors.New("429"), 7*time.Second), errors.New("503")
	s.apply(enqueued{s.now})
	s.result(0, down)
	for i, want := range []time.Duration{7 * time.Second, 7 * time.Second} {
		s.now = s.q.Due
		s.apply(woken{s.now})
		s.result(0, limit)
		if got := s.q.Due.Sub(s.now); got != want {
			t.Errorf("limit %d: the next attempt is in %s, want %s", i+1, got, want)
		}
	}
	if q := s.q; q.Tries != 1 || q.Failures != 1 || q.Reason != "503" || !q.Limited() || q.LimitedCount != 2 {
		t.Errorf("after the limits: %+v", q)
	}
	s.now = s.q.Due
	s.apply(woken{s.now})
	s.result(0, down)
	if got := s.q.Due.Sub(s.now); got != time.Hour {
		t.Errorf("after the second failure the next attempt is in %s, want the second step", got)
	}
	s.fail(0, nil)
	if s.q.Limited() || s.q.LimitedCount != 0 || s.q.LimitReason != "" {
		t.Errorf("with nothing waiting it is limited still: %+v", s.q)
	}
	want := []string{"send 0", "send 0", "send 0", "send 0", "send 0", "done 0 after 3"}
	if !slices.Equal(s.log, want) {
		t.Errorf("got %q, want %q", s.log, want)
	}
}

// TestLimitWithoutAnEnd: a receiver that always answers 429 is tried again when it said, or with an
// exponential back-off. Its notifications are given up after DeadAfter.
func TestLimitWithoutAnEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		after    time.Duration
		min, max int // attempts within 72 hours
	}{
		"says little":  {10 * time.Second, 20_000, 30_000},
		"says nothing": {0, 500, 1200},
		"says an hour": {time.Hour, 60, 75},
		"says a year":  {365 * 24 * time.Hour, 3, 4},
	} {
		s := &queueScript{t: t, now: t0}
		s.apply(enqueued{s.now})
		for s.q.Pending() > 0 && len(s.log) < 50_000 {
			s.now = later(s.now, s.q.Due)
			s.apply(woken{s.now})
			s.result(0, failure.Limited(errors.New("429"), tt.after))
		}
		if n := len(s.log) - 2; n < tt.min || n > tt.max {
			t.Errorf("%s: %d attempts, want %d to %d", name, n, tt.min, tt.max)
		}
		if end := s.log[len(s.log)-2:]; !slices.Equal(end, []string{"tell dead_letter", "dead 0 after 0"}) {
			t.Errorf("%s: it ends with %q", name, end)
		}
	}
}

// TestLimitExpires: a receiver expires that accepted nothing for five days, and no other.
func TestLimitExpires(t *testing.T) {
	limit := failure.Limited(errors.New("429"), 6*time.Hour)
	for _, takes := range []bool{false, true} {
		s := &queueScript{t: t, now: t0}
		for range 1000 {
			s.apply(enqueued{s.now})
		}
		for i := 0; s.now.Sub(t0) < 30*24*time.Hour && !s.q.Expired(); i++ {
			s.now = later(s.now, s.q.Due)
			s.apply(woken{s.now})
			if takes && i%4 == 3 {
				s.result(0, nil)
			}
			s.result(0, limit)
		}
		if s.q.Expired() == takes {
			t.Errorf("takes some: %v; expired: %v at %s", takes, s.q.Expired(), s.now)
		}
	}
}

// TestLimitIsLoggedOncePerEpisode takes one notification after each wait.
func TestLimitIsLoggedOncePerEpisode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		limited := false
		sink := &recorder{do: func(context.Context, pipeline.Notification) error {
			if limited = !limited; limited {
				return failure.Limited(errors.New("answered 429 Too Many Requests"), 10*time.Second)
			}
			return nil
		}}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": sink}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for _, id := range []string{"1", "2", "3", "4"} {
			r.notify("a", id)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		r.stop()
		if got, want := sink.got(), "[1 1 2 2 3 3 4 4]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if len(r.health) > 0 {
			t.Errorf("a limit was told: %v", r.events())
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "limits how much it takes") || !strings.Contains(lines[1], "put_off=4") {
			t.Errorf("logged %q, want where it began and where it ended", lines)
		}
	})
}

// TestLimitOfAnExpiredReceiver waits, since the receiver is there.
func TestLimitOfAnExpiredReceiver(t *testing.T) {
	s := &queueScript{t: t, now: t0}
	s.apply(enqueued{s.now})
	s.fail(0, failure.Gone(errors.New("410")))
	s.log = nil
	s.apply(enqueued{s.now})
	s.result(0, failure.Limited(errors.New("429"), time.Minute))
	s.fail(0, nil)
	if want := []string{"send 1", "send 1", "tell receiver_recovered", "done 1 after 1"}; !slices.Equal(s.log, want) {
		t.Errorf("got %q, want %q", s.log, want)
	}
}

// TestRate: a sink gets no more than its rate, other sinks do not wait for it, and the next process
// delivers what is left.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var slow, fast []time.Duration
		at := func(list *[]time.Duration) pipeline.Sink {
			return pipeline.SinkFunc(func(context.Context, pipeline.Notification) error {
				*list = append(*list, time.Since(start).Round(time.Second))
				return nil
			})
		}
		store := txtest.New()
		cfg := Config{Sinks: map[string]pipeline.Sink{"slow": registry.LimitRate(at(&slow), 0.1, 2), "fast": at(&fast)}}
		r := newPoolFixture(t, store, cfg)
		for i := range 5 {
			r.notify("slow", fmt.Sprint("s", i))
			r.notify("fast", fmt.Sprint("f", i))
		}
		time.Sleep(21 * time.Second)
		synctest.Wait()
		synctest.Wait()
		if got, want := fmt.Sprint(slow), "[0s 0s 10s 20s]"; got != want {
			t.Errorf("the slow sink was used at %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(fast), "[0s 0s 0s 0s 0s]"; got != want {
			t.Errorf("the other was used at %s, want %s", got, want)
		}
		for horizon, want := range map[time.Duration]bool{8 * time.Second: true, 10 * time.Second: false} {
			if due, parked := r.d.Backlog(horizon); r.d.Idle(horizon) != want || (due == 0) != want || due+parked != 1 {
				t.Errorf("idle %v, %d due and %d parked, while an attempt waits for nine seconds and the horizon is %s", r.d.Idle(horizon), due, parked, horizon)
			}
		}
		r.stop()
		if !r.d.Idle(0) {
			t.Error("it is not idle after its end")
		}
		r = newPoolFixture(t, store, cfg)
		time.Sleep(time.Minute)
		r.stop()
		if len(slow) != 5 {
			t.Errorf("%d attempts after a restart, want 5", len(slow))
		}
	})
}

// TestHeldAttemptOfALostLane: a held attempt is not made after its lane was lost. The process that
// owns the lane repeats it, which may be this one again.
func TestHeldAttemptOfALostLane(t *testing.T) {
	for _, back := range []bool{true, false} {
		t.Run(fmt.Sprintf("back %v", back), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { heldAttempt(t, back) })
		})
	}
}

func heldAttempt(t *testing.T, back bool) {
	var owned atomic.Bool
	var epoch atomic.Uint64
	owned.Store(true)
	s, store := &recorder{}, txtest.New()
	r := newPoolFixture(t, store, Config{
		Sinks: map[string]pipeline.Sink{"a": registry.LimitRate(s, 1./600, 1)},
		Owned: func(string) bool { return owned.Load() }, Epoch: func(string) uint64 { return epoch.Load() },
	})
	r.notify("a", "x")
	r.notify("a", "y") // held for ten minutes
	synctest.Wait()
	owned.Store(false)
	wakes := store.Start(time.Now()) // are another process's now
	want := "[x]"
	if back {
		// It begins the attempt anew, and goes down.
		other := NewDelivery(Config{Hand: func(Attempt) {}})
		for _, m := range wakes {
			if err := store.Handle(t.Context(), other, m); err != nil {
				t.Fatal(err)
			}
		}
		epoch.Add(1)
		owned.Store(true)
		for _, m := range store.Start(time.Now()) {
			r.send(m)
		}
		want = "[x y]"
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	if got := s.got(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !r.d.Idle(0) {
		t.Error("it is not idle")
	}
	if q := r.queue("a"); back && q.Pending() != 0 {
		t.Errorf("there is something left: %+v", q)
	}
	r.stop()
}

// TestWithdrawnBeforeItBegins: an attempt that waits for the rate of its sink, or for a slot, is
// canceled with its subscription, and the next notification takes its place.
func TestWithdrawnBeforeItBegins(t *testing.T) {
	for name, wrap := range map[string]func(pipeline.Sink) pipeline.Sink{
		"held by a rate":   func(s pipeline.Sink) pipeline.Sink { return registry.LimitRate(s, 1./3600, 1) },
		"waits for a slot": func(s pipeline.Sink) pipeline.Sink { return s },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &recorder{}
				began := time.Now()
				var last time.Duration
				s.do = func(context.Context, pipeline.Notification) error { last = time.Since(began); return nil }
				busy := pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { time.Sleep(maxFastTime / 2); return nil })
				r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": wrap(s), "busy": busy}, Fast: 1, Slow: 1})
				r.notify("a", "x")
				synctest.Wait()
				r.notify("busy", "b")
				r.send(notification(t, "a", "old", "y"))
				r.send(notification(t, "a", "new", "z"))
				synctest.Wait()
				r.send(withdrawal("a", "another"))
				r.send(withdrawal("a", "old"))
				time.Sleep(2 * time.Hour)
				r.stop()
				if got := s.got(); got != "[x z]" || last > time.Hour {
					t.Errorf("got %s, the last after %s; want [x z], within an hour", got, last)
				}
				if q := r.queue("a"); q.Attempt != 3 || q.Failures != 0 {
					t.Errorf("got %+v, want three attempts", q)
				}
			})
		})
	}
}

// TestRateAndFailures: a receiver with a rate below one an hour that always fails expires in time.
func TestRateAndFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{do: func(context.Context, pipeline.Notification) error { return errors.New("500") }}
		r := newPoolFixture(t, txtest.New(), Config{
			Sinks:  map[string]pipeline.Sink{"a": registry.LimitRate(s, 0.4/3600, 1)},
			Policy: Policy{Retry: []time.Duration{time.Minute}, DeadAfter: 7 * time.Hour, ExpireAfter: 12 * time.Hour},
		})
		r.notify("a", "x")
		r.notify("a", "y")
		time.Sleep(13 * time.Hour)
		r.stop()
		if got, want := s.got(), "[x x x x y y]"; got != want { // at 0h, 2.5h, 5h ...
			t.Errorf("attempts %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(r.events()), "[a receiver_failing a dead_letter a receiver_expired]"; got != want || len(r.dead) != 2 {
			t.Errorf("events %s and %d dead letters, want %s and 2", got, len(r.dead), want)
		}
	})
}

// TestRateChanges: a held attempt begins as soon as a new rate lets it. The same rate changes
// nothing.
func TestRateChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": registry.LimitRate(s, 1./3600, 1)}})
		for _, id := range []string{"u", "v", "w", "x", "y"} {
			r.notify("a", id)
		}
		for _, c := range []struct {
			what string
			sink pipeline.Sink
			wait time.Duration
			want string
		}{
			{"at first", nil, 59 * time.Minute, "[u]"},
			{"the same", registry.LimitRate(s, 1./3600, 1), 59 * time.Second, "[u]"},
			{"the same, later", nil, time.Second, "[u v]"},
			{"a higher one", registry.LimitRate(s, 1./60, 1), 0, "[u v w]"},
			{"a higher one, later", nil, time.Minute, "[u v w x]"},
			{"none", s, 0, "[u v w x y]"},
		} {
			if c.sink != nil {
				r.d.Reconfigure(map[string]pipeline.Sink{"a": c.sink}, Policy{})
			}
			time.Sleep(c.wait)
			synctest.Wait()
			if got := s.got(); got != c.want {
				t.Errorf("%s: got %s, want %s", c.what, got, c.want)
			}
		}
		if !r.d.Idle(0) {
			t.Error("it is not idle")
		}
		r.stop()
	})
}
