package sinks

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/txtest"
)

// TestLimitIsNoFailure puts attempts off between failures: the schedule does not move.
func TestLimitIsNoFailure(t *testing.T) {
	s := &script{t: t, p: Policy{Retry: []time.Duration{time.Minute, time.Hour}}, now: t0}
	limit, down := pipeline.Limited(errors.New("429"), 7*time.Second), errors.New("503")
	s.apply(enqueued{s.now})
	s.result(0, down)
	for i, want := range []time.Duration{7700 * time.Millisecond, 7700 * time.Millisecond} {
		s.now = s.q.Due
		s.apply(woken{s.now})
		s.result(0, limit)
		if got := s.q.Due.Sub(s.now); got != want {
			t.Errorf("limit %d: the next attempt is in %s, want %s", i+1, got, want)
		}
	}
	if q := s.q; q.Tries != 1 || q.Failures != 1 || q.Reason != "503" || !q.Limited() || q.Limits != 2 {
		t.Errorf("after the limits: %+v", q)
	}
	s.now = s.q.Due
	s.apply(woken{s.now})
	s.result(0, down)
	if got := s.q.Due.Sub(s.now); got != time.Hour {
		t.Errorf("after the second failure the next attempt is in %s, want the second step", got)
	}
	s.fail(0, nil)
	if s.q.Limited() || s.q.Limits != 0 || s.q.LimitReason != "" {
		t.Errorf("with nothing waiting it is limited still: %+v", s.q)
	}
	want := []string{"send 0", "send 0", "send 0", "send 0", "send 0", "done 0 after 3"}
	if !slices.Equal(s.log, want) {
		t.Errorf("got %q, want %q", s.log, want)
	}
}

// TestLimitWithoutAnEnd asks a receiver that says 429 to everything again when it said, or ever
// less often where it says nothing, and gives up by time what waits.
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
		s := &script{t: t, now: t0}
		s.apply(enqueued{s.now})
		for s.q.Pending() > 0 && len(s.log) < 50_000 {
			s.now = later(s.now, s.q.Due)
			s.apply(woken{s.now})
			s.result(0, pipeline.Limited(errors.New("429"), tt.after))
		}
		if n := len(s.log) - 2; n < tt.min || n > tt.max {
			t.Errorf("%s: %d attempts, want %d to %d", name, n, tt.min, tt.max)
		}
		if end := s.log[len(s.log)-2:]; !slices.Equal(end, []string{"tell dead_letter", "dead 0 after 0"}) {
			t.Errorf("%s: it ends with %q", name, end)
		}
	}
}

// TestLimitExpires expires a receiver that took nothing for five days, and none that does.
func TestLimitExpires(t *testing.T) {
	limit := pipeline.Limited(errors.New("429"), 6*time.Hour)
	for _, takes := range []bool{false, true} {
		s := &script{t: t, now: t0}
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
				return pipeline.Limited(errors.New("answered 429 Too Many Requests"), 10*time.Second)
			}
			return nil
		}}
		r := newRig(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": sink}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
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
	s := &script{t: t, now: t0}
	s.apply(enqueued{s.now})
	s.fail(0, pipeline.Gone(errors.New("410")))
	s.log = nil
	s.apply(enqueued{s.now})
	s.result(0, pipeline.Limited(errors.New("429"), time.Minute))
	s.fail(0, nil)
	if want := []string{"send 1", "send 1", "tell receiver_recovered", "done 1 after 1"}; !slices.Equal(s.log, want) {
		t.Errorf("got %q, want %q", s.log, want)
	}
}
