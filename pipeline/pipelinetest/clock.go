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

// adjustableClock is the machine's clock with an offset that can be set.
type adjustableClock struct{ offset atomic.Int64 }

func (c *adjustableClock) now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.offset.Load()))
}

func (c *adjustableClock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// scheduleWakes publishes a message for each of ahead, by key, whose handler sets a wake that
// far ahead of the clock.
func scheduleWakes(t *testing.T, tr flow.Transport, c *adjustableClock, ahead map[string]time.Duration) <-chan receivedWake {
	t.Helper()
	wakes, _ := consumeWakes(t, tr, func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if d, ok := ahead[m.Key]; ok {
			tx.WakeAt(m.Key, c.now().Add(d))
		}
		return nil
	})
	for key := range ahead {
		mustPublish(t, tr, testMessage("in", key, "id"+key))
	}
	waitUntilIdle(t, tr, nil)
	return wakes
}

// wakeKeys waits for n wakes and returns their keys, in order.
func wakeKeys(t *testing.T, wakes <-chan receivedWake, n int) []string {
	t.Helper()
	var keys []string
	for range n {
		keys = append(keys, receive(t, wakes, "a wake").key)
	}
	slices.Sort(keys)
	return keys
}

// testClockSetAhead sets the clock over wakes that are hours away: they come at once.
func testClockSetAhead(t *testing.T, _ Features, s Site) {
	c := &adjustableClock{}
	tr := s.Open(t, Config{Now: c.now})
	wakes := scheduleWakes(t, tr, c, map[string]time.Duration{"a": time.Hour, "b": 2 * time.Hour, "c": 100 * time.Hour})
	c.advance(3 * time.Hour)
	if got, want := wakeKeys(t, wakes, 2), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("the wakes of %v came, want %v", got, want)
	}
	expectNoDueWakes(t, tr, wakes)
}

// testClockSetBack sets the clock back behind wakes: each comes once, at once, and what is
// scheduled then comes by the new time.
func testClockSetBack(t *testing.T, f Features, s Site) {
	c := &adjustableClock{}
	tr := s.Open(t, Config{Now: c.now})
	came, again := make(chan receivedWake, 100), c.now()
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
		w := receivedWake{key: m.Key, askedFor: m.Time, receivedAt: c.now()}
		tx.OnCommit(func() { came <- w })
		return nil
	})
	keys := []string{"a", "b", "c"}
	for _, k := range keys {
		mustPublish(t, tr, testMessage("in", k, "id"+k))
	}
	waitUntilIdle(t, tr, nil)
	c.advance(-30 * time.Second) // as clocks are trimmed
	if f.Bubble {
		time.Sleep(waitTimeout)
	}
	expectNoDueWakes(t, tr, came)
	c.advance(-2 * time.Hour)
	if got := wakeKeys(t, came, 3); !slices.Equal(got, keys) {
		t.Errorf("the wakes of %v came, want %v", got, keys)
	}
	expectNoDueWakes(t, tr, came)
	c.advance(3 * time.Hour)
	if w := receive(t, came, "the wake that was set again"); w.key != "a" || !w.askedFor.Equal(again) || w.receivedAt.Before(again) {
		t.Errorf("got %+v, want one of a at %v", w, again)
	}
	c.advance(100 * time.Hour)
	expectNoDueWakes(t, tr, came)
}

// testClockSetBackBetween sets the clock back while no transport is open, and once more
// closes the next one before all wakes that then come are handled.
func testClockSetBackBetween(t *testing.T, _ Features, s Site) {
	c := &adjustableClock{}
	reopen := func(tr flow.Transport) flow.Transport {
		mustClose(t, tr)
		return s.Open(t, Config{Now: c.now})
	}
	tr := s.Open(t, Config{Now: c.now})
	scheduleWakes(t, tr, c, map[string]time.Duration{"a": 4 * time.Hour, "b": 5 * time.Hour})
	c.advance(20 * time.Second)
	tr = reopen(tr)
	wakes, _ := consumeWakes(t, tr, nil)
	waitUntilIdle(t, tr, nil)
	expectNoDueWakes(t, tr, wakes)

	c.advance(-2 * time.Hour)
	tr = reopen(tr)
	handled := make(chan string, 100)
	rejected := make(chan struct{}, 1)
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Key == "b" {
			signal(rejected)
			return errors.New("not before reopening")
		}
		tx.OnCommit(func() { handled <- m.Key })
		return nil
	})
	if got := receive(t, handled, "the wake of a"); got != "a" {
		t.Errorf("got a wake of %s", got)
	}
	receive(t, rejected, "the wake of b")
	consume(t, tr, "h", "other", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		tx.OnCommit(func() { handled <- m.ID })
		return nil
	})
	for range 3 { // commits that might store what time it is
		c.advance(15 * time.Second)
		mustPublish(t, tr, testMessage("other", "k", "more"))
		receive(t, handled, "a message")
	}
	tr = reopen(tr)
	wakes, _ = consumeWakes(t, tr, nil)
	if w := receive(t, wakes, "the wake of b"); w.key != "b" {
		t.Errorf("got %+v, want the wake of b", w)
	}
	waitUntilIdle(t, tr, nil)
	tr = reopen(tr)
	wakes, _ = consumeWakes(t, tr, nil)
	waitUntilIdle(t, tr, nil)
	expectNoDueWakes(t, tr, wakes)
}

// testClockSetAheadWhileWaking sets the clock ahead while a wake of the start is still rejected, and sets it
// back while no transport is open. A wake that was set in between then comes at once.
func testClockSetAheadWhileWaking(t *testing.T, _ Features, s Site) {
	c := &adjustableClock{}
	tr := s.Open(t, Config{Now: c.now})
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		tx.WakeAt(m.Key, c.now().Add(time.Hour), flow.AtStart)
		return nil
	})
	mustPublish(t, tr, testMessage("in", "k", "first"))
	waitUntilIdle(t, tr, nil)
	mustClose(t, tr)

	tr = s.Open(t, Config{Now: c.now})
	rejected, handled := make(chan struct{}, 1), make(chan string, 100)
	consume(t, tr, "g", "in", func(context.Context, flow.Tx, flow.Message) error {
		signal(rejected)
		return errors.New("not before reopening")
	})
	receive(t, rejected, "the wake of the start")
	c.advance(2 * time.Hour)
	sleeps := func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type != flow.TypeWake {
			tx.WakeAt(m.Key, c.now().Add(time.Minute))
		}
		tx.OnCommit(func() { handled <- m.Type })
		return nil
	}
	consume(t, tr, "h", "other", sleeps)
	mustPublish(t, tr, testMessage("other", "k", "second"))
	receive(t, handled, "a message")
	mustClose(t, tr)

	c.advance(-2 * time.Hour)
	tr = s.Open(t, Config{Now: c.now})
	consume(t, tr, "h", "other", sleeps)
	if got := receive(t, handled, "the wake that was scheduled by the later time"); got != flow.TypeWake {
		t.Errorf("got a message of type %s", got)
	}
}
