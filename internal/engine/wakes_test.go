package engine

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestWakesAgainstAList compares Wakes with a list that is searched each time.
func TestWakesAgainstAList(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	for seed := range uint64(50) {
		dice := rand.New(rand.NewPCG(seed, 0))
		q, list, starting := NewWakes(), map[string]Wake{}, map[string]bool{}
		for step := range 400 {
			switch dice.IntN(100) {
			case 0:
				q.WakeAll()
				for key := range list {
					starting[key] = true
				}
			case 1:
				q.Start()
				for key, w := range list {
					if w.AtStart {
						starting[key] = true
					}
				}
			default:
				w := Wake{Key: fmt.Sprint(dice.IntN(20)), AtStart: dice.IntN(2) == 0}
				delete(starting, w.Key)
				delete(list, w.Key)
				if dice.IntN(3) > 0 {
					w.At = at(1 + dice.IntN(50))
					list[w.Key] = w
				}
				q.Set(w)
				if got := q.Get(w.Key); got != list[w.Key] {
					t.Fatalf("seed %d, step %d: Get(%s) = %v, want %v", seed, step, w.Key, got, list[w.Key])
				}
			}
			if q.Waking() != (len(starting) > 0) {
				t.Fatalf("seed %d, step %d: Waking is %v", seed, step, q.Waking())
			}
			var first Wake // of those that are in question
			for key, w := range list {
				if len(starting) > 0 && !starting[key] {
					continue
				}
				if first.At.IsZero() || w.At.Before(first.At) {
					first = w
				}
			}
			now := at(dice.IntN(60))
			got, ok, until := q.Next(now)
			wantOK := len(starting) > 0 || !first.At.IsZero() && !first.At.After(now)
			switch {
			case ok != wantOK:
				t.Fatalf("seed %d, step %d: Next says %v, want %v", seed, step, ok, wantOK)
			case ok && (list[got.Key] != got || !starting[got.Key] && len(starting) > 0):
				t.Fatalf("seed %d, step %d: Next = %v, which is not set", seed, step, got)
			case ok && len(starting) == 0 && !got.At.Equal(first.At):
				t.Fatalf("seed %d, step %d: Next = %v, want one at %v", seed, step, got, first.At)
			case !ok && !until.Equal(first.At):
				t.Fatalf("seed %d, step %d: the next wake is at %v, want %v", seed, step, until, first.At)
			}
		}
	}
}

func TestClock(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	wall := start
	var log strings.Builder
	woken := 0
	c := Clock{Wall: func() time.Time { return wall }, Log: slog.New(slog.NewTextHandler(&log, nil))}
	c.WakeAll = func() {
		woken++
		if !c.Behind(wall) {
			t.Error("the clock is right before all was woken")
		}
		c.Check() // does nothing while this one wakes
	}
	if c.Behind(start) {
		t.Error("a clock that has seen no time is behind")
	}
	if now := c.Now(); !now.Equal(start) {
		t.Errorf("it is %v, want %v", now, start)
	}
	c.See(start.Add(-time.Hour)) // is not later
	wall = start.Add(-SetBack)
	if c.CheckedNow(); woken != 0 {
		t.Errorf("all was woken after the clock was set back by no more than %v", SetBack)
	}
	wall = start.Add(-SetBack - time.Second)
	c.CheckedNow()
	c.CheckedNow()
	if woken != 1 {
		t.Errorf("all was woken %d times, want 1", woken)
	}
	if want := "from=" + start.Format("2006-01-02T15:04:05.000Z"); !strings.Contains(log.String(), want) {
		t.Errorf("the log is %q, want %q in it", log.String(), want)
	}
	if c.Behind(wall) {
		t.Error("it is behind after all was woken")
	}
}
