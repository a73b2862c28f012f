package pipelinetest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// setClock is a clock that can be set.
type setClock struct{ ahead atomic.Int64 }

func (c *setClock) now() time.Time { return time.Now().Round(0).Add(time.Duration(c.ahead.Load())) }

func (c *setClock) set(d time.Duration) { c.ahead.Add(int64(d)) }

// schedules publishes a message for each of ahead, by key, whose handler sets a wake that
// far ahead of the clock.
func schedules(t *testing.T, tr flow.Transport, c *setClock, ahead map[string]time.Duration) <-chan woken {
	t.Helper()
	wakes, _ := sleeper(t, tr, func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if d, ok := ahead[m.Key]; ok {
			tx.WakeAt(m.Key, c.now().Add(d))
		}
		return nil
	})
	for key := range ahead {
		publish(t, tr, text("in", key, "id"+key))
	}
	settle(t, tr, nil)
	return wakes
}

// keysOf waits for n wakes and returns their keys, in order.
func keysOf(t *testing.T, wakes <-chan woken, n int) []string {
	t.Helper()
	var keys []string
	for range n {
		keys = append(keys, await(t, wakes, "a wake").key)
	}
	slices.Sort(keys)
	return keys
}

// testClockSetAhead sets the clock over wakes that are hours away: they come at once.
func testClockSetAhead(t *testing.T, _ Features, s Site) {
	c := &setClock{}
	tr := s.Open(t, Config{Now: c.now})
	wakes := schedules(t, tr, c, map[string]time.Duration{"a": time.Hour, "b": 2 * time.Hour, "c": 100 * time.Hour})
	c.set(3 * time.Hour)
	if got, want := keysOf(t, wakes, 2), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("the wakes of %v came, want %v", got, want)
	}
	noMoreSoon(t, tr, wakes)
}

// testClockSetBack sets the clock back behind wakes: each comes once, at once, and what is
// scheduled then comes by the new time.
func testClockSetBack(t *testing.T, f Features, s Site) {
	c := &setClock{}
	tr := s.Open(t, Config{Now: c.now})
	came, again := make(chan woken, 100), c.now()
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type != flow.TypeWake {
			if m.Key != "last" {
				tx.WakeAt(m.Key, c.now().Add(4*time.Hour))
			}
			return nil
		}
		if m.Key == "a" && m.Time.After(again) {
			tx.WakeAt("a", again)
		}
		w := woken{key: m.Key, at: m.Time, came: c.now()}
		tx.OnCommit(func() { came <- w })
		return nil
	})
	keys := []string{"a", "b", "c"}
	for _, k := range keys {
		publish(t, tr, text("in", k, "id"+k))
	}
	settle(t, tr, nil)
	c.set(-30 * time.Second) // as clocks are trimmed
	if f.Bubble {
		time.Sleep(guard)
	}
	noMoreSoon(t, tr, came)
	c.set(-2 * time.Hour)
	if got := keysOf(t, came, 3); !slices.Equal(got, keys) {
		t.Errorf("the wakes of %v came, want %v", got, keys)
	}
	noMoreSoon(t, tr, came)
	c.set(3 * time.Hour)
	if w := await(t, came, "the wake that was set again"); w.key != "a" || !w.at.Equal(again) || w.came.Before(again) {
		t.Errorf("got %+v, want one of a at %v", w, again)
	}
	c.set(100 * time.Hour)
	noMoreSoon(t, tr, came)
}

// testClockSetBackBetween sets the clock back while no transport is open, and once more
// closes the next one before all wakes that then come are handled.
func testClockSetBackBetween(t *testing.T, _ Features, s Site) {
	c := &setClock{}
	reopen := func(tr flow.Transport) flow.Transport {
		mustClose(t, tr)
		return s.Open(t, Config{Now: c.now})
	}
	tr := s.Open(t, Config{Now: c.now})
	schedules(t, tr, c, map[string]time.Duration{"a": 4 * time.Hour, "b": 5 * time.Hour})
	c.set(20 * time.Second)
	tr = reopen(tr)
	wakes, _ := sleeper(t, tr, nil)
	settle(t, tr, nil)
	noMoreSoon(t, tr, wakes)

	c.set(-2 * time.Hour)
	tr = reopen(tr)
	handled := make(chan string, 100)
	rejected := make(chan struct{}, 1)
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Key == "b" {
			tell(rejected)
			return errors.New("not before reopening")
		}
		tx.OnCommit(func() { handled <- m.Key })
		return nil
	})
	if got := await(t, handled, "the wake of a"); got != "a" {
		t.Errorf("got a wake of %s", got)
	}
	await(t, rejected, "the wake of b")
	consume(t, tr, "h", "other", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		tx.OnCommit(func() { handled <- m.ID })
		return nil
	})
	for range 3 { // commits that might store what time it is
		c.set(15 * time.Second)
		publish(t, tr, text("other", "k", "more"))
		await(t, handled, "a message")
	}
	tr = reopen(tr)
	wakes, _ = sleeper(t, tr, nil)
	if w := await(t, wakes, "the wake of b"); w.key != "b" {
		t.Errorf("got %+v, want the wake of b", w)
	}
	settle(t, tr, nil)
	tr = reopen(tr)
	wakes, _ = sleeper(t, tr, nil)
	settle(t, tr, nil)
	noMoreSoon(t, tr, wakes)
}

// testClockSetAheadWhileWaking sets the clock ahead while a wake of the start is still rejected, and sets it
// back while no transport is open. A wake that was set in between then comes at once.
func testClockSetAheadWhileWaking(t *testing.T, _ Features, s Site) {
	c := &setClock{}
	tr := s.Open(t, Config{Now: c.now})
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		tx.WakeAt(m.Key, c.now().Add(time.Hour), flow.AtStart)
		return nil
	})
	publish(t, tr, text("in", "k", "first"))
	settle(t, tr, nil)
	mustClose(t, tr)

	tr = s.Open(t, Config{Now: c.now})
	rejected, handled := make(chan struct{}, 1), make(chan string, 100)
	consume(t, tr, "g", "in", func(context.Context, flow.Tx, flow.Message) error {
		tell(rejected)
		return errors.New("not before reopening")
	})
	await(t, rejected, "the wake of the start")
	c.set(2 * time.Hour)
	sleeps := func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type != flow.TypeWake {
			tx.WakeAt(m.Key, c.now().Add(time.Minute))
		}
		tx.OnCommit(func() { handled <- m.Type })
		return nil
	}
	consume(t, tr, "h", "other", sleeps)
	publish(t, tr, text("other", "k", "second"))
	await(t, handled, "a message")
	mustClose(t, tr)

	c.set(-2 * time.Hour)
	tr = s.Open(t, Config{Now: c.now})
	consume(t, tr, "h", "other", sleeps)
	if got := await(t, handled, "the wake that was scheduled by the later time"); got != flow.TypeWake {
		t.Errorf("got a message of type %s", got)
	}
}
