package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// receivedWake is a wake that a handler got.
type receivedWake struct {
	key, id    string
	askedFor   time.Time
	receivedAt time.Time
}

// consumeWakes consumes "in". Messages run plan, unless that is nil, and wakes are sent to the channel.
func consumeWakes(t *testing.T, tr flow.Transport, plan handler) (<-chan receivedWake, func()) {
	wakes := make(chan receivedWake, 100)
	stop := consume(t, tr, "g", "in", func(ctx context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type != flow.TypeWake {
			if plan == nil {
				return nil
			}
			return plan(ctx, tx, m)
		}
		if m.Topic != "in" || m.Position != "" || m.ID == "" {
			t.Errorf("a wake came as %+v", m)
		}
		w := receivedWake{m.Key, m.ID, m.Time, time.Now()}
		tx.OnCommit(func() { wakes <- w })
		return nil
	})
	return wakes, stop
}

// wakeDelay is how far ahead wakes are set: far ahead where waiting takes no time.
func (f Features) wakeDelay() time.Duration {
	if f.Bubble {
		return waitTimeout / 3
	}
	return shortDelay
}

func testWakesOnce(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	base := time.Now().Add(f.wakeDelay()).Truncate(time.Microsecond)
	keys := []string{"a", "b", "c", "d", "\x00", ""}
	wakes, _ := consumeWakes(t, tr, func(_ context.Context, tx flow.Tx, m flow.Message) error {
		tx.WakeAt(m.Key, base.Add(time.Duration(slices.Index(keys, m.Key))*time.Millisecond))
		return nil
	})
	for _, k := range keys {
		mustPublish(t, tr, testMessage("in", k, "id"+k))
	}
	ids := map[string]bool{}
	for range keys {
		w := receive(t, wakes, "a wake")
		if want := base.Add(time.Duration(slices.Index(keys, w.key)) * time.Millisecond); !w.askedFor.Equal(want) {
			t.Errorf("the wake of %q says %v, want %v", w.key, w.askedFor, want)
		}
		if w.receivedAt.Before(w.askedFor) {
			t.Errorf("the wake of %q came %v early", w.key, w.askedFor.Sub(w.receivedAt))
		}
		if ids[w.id] {
			t.Errorf("two wakes have the ID %s", w.id)
		}
		ids[w.id] = true
	}
	expectNoMoreWakes(t, f, tr, wakes)
}

// expectNoMoreWakes checks that no wake comes before one that it sets now.
func expectNoMoreWakes(t *testing.T, f Features, tr flow.Transport, wakes <-chan receivedWake) {
	t.Helper()
	waitUntilIdle(t, tr, nil)
	end := make(chan struct{})
	consume(t, tr, "last", "last", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type == flow.TypeWake {
			tx.OnCommit(func() { close(end) })
			return nil
		}
		tx.WakeAt("k", time.Now().Add(2*f.wakeDelay()))
		return nil
	})
	mustPublish(t, tr, testMessage("last", "k", "last"))
	receive(t, end, "the last wake")
	waitUntilIdle(t, tr, nil)
	select {
	case w := <-wakes:
		t.Errorf("one wake too many: %+v", w)
	default:
	}
}

// testWakeReplaced sets wakes and replaces or cancels them, in one transaction
// and in several.
func testWakeReplaced(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	now := time.Now().Truncate(time.Microsecond)
	early, late := now.Add(f.wakeDelay()), now.Add(2*f.wakeDelay())
	far := late.Add(time.Hour)
	wakes, _ := consumeWakes(t, tr, func(_ context.Context, tx flow.Tx, m flow.Message) error {
		switch m.ID {
		case "later.0", "gone.0":
			tx.WakeAt(m.Key, early)
		case "later.1":
			tx.WakeAt(m.Key, late)
		case "gone.1":
			tx.WakeAt(m.Key, time.Time{})
		case "sooner.0":
			tx.WakeAt(m.Key, far, flow.AtStart)
		case "sooner.1":
			tx.WakeAt(m.Key, early)
		case "once.0":
			tx.WakeAt(m.Key, early)
			tx.WakeAt(m.Key, time.Time{})
			tx.WakeAt(m.Key, late)
			tx.WakeAt("none", time.Time{})
		}
		return nil
	})
	keys, want := []string{"sooner", "once"}, map[string]time.Time{"sooner": early, "once": late}
	if f.Bubble { // elsewhere the early time may pass before the second message is handled
		keys = append(keys, "later", "gone")
		want["later"] = late
	}
	for _, k := range keys {
		mustPublish(t, tr, numberedMessages("in", k, 2)...)
	}
	for range len(want) {
		w := receive(t, wakes, "a wake")
		if !w.askedFor.Equal(want[w.key]) {
			t.Errorf("the wake of %q says %v, want %v", w.key, w.askedFor, want[w.key])
		}
		delete(want, w.key)
	}
	expectNoMoreWakes(t, f, tr, wakes)
}

// testWakeRejected rejects a wake, and sets it again while it handles it.
func testWakeRejected(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	base := time.Now().Add(f.wakeDelay()).Truncate(time.Microsecond)
	done := make(chan struct{})
	var seen journal
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type != flow.TypeWake {
			tx.WakeAt("k", base)
			return nil
		}
		seen.add("k", m.Time.Sub(base).String())
		switch n := len(seen.ids("k")); n {
		case 1:
			return errors.New("rejected")
		case 2, 3:
			tx.WakeAt("k", base.Add(time.Duration(n)*time.Millisecond))
		default:
			tx.OnCommit(func() { close(done) })
		}
		return nil
	})
	mustPublish(t, tr, testMessage("in", "k", "1"))
	receive(t, done, "the last wake")
	expectNoMoreWakes(t, f, tr, nil)
	seen.want(t, "k", "0s", "0s", "2ms", "3ms")
}

// testWakeInThePast sets wakes that are long due, each earlier than one that was handled.
func testWakeInThePast(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	base := time.Now().Truncate(time.Microsecond)
	wakes, _ := consumeWakes(t, tr, func(_ context.Context, tx flow.Tx, m flow.Message) error {
		tx.WakeAt(m.Key, m.Time)
		return nil
	})
	for i := range 4 {
		m := testMessage("in", "k", fmt.Sprint(i))
		m.Time = base.Add(-time.Duration(i) * time.Hour)
		mustPublish(t, tr, m)
		if w := receive(t, wakes, "a wake that is due"); !w.askedFor.Equal(m.Time) {
			t.Errorf("the wake says %v, want %v", w.askedFor, m.Time)
		}
	}
	expectNoMoreWakes(t, f, tr, wakes)
}

func testWakeSurvivesReopen(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	at := time.Now().Add(f.wakeDelay()).Truncate(time.Microsecond)
	set := make(chan struct{})
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type == flow.TypeWake {
			return errors.New("not before reopening")
		}
		tx.WakeAt(m.Key, at)
		tx.OnCommit(func() { close(set) })
		return nil
	})
	mustPublish(t, tr, testMessage("in", "k", "1"))
	receive(t, set, "the commit")
	mustClose(t, tr)
	tr = s.Open(t, Config{})
	wakes, _ := consumeWakes(t, tr, nil)
	if w := receive(t, wakes, "the wake"); w.key != "k" || !w.askedFor.Equal(at) || w.receivedAt.Before(at) {
		t.Errorf("the wake came as %+v, want one at %v", w, at)
	}
	expectNoMoreWakes(t, f, tr, wakes)
}

// testWakeAtStart closes a transport with wakes far ahead: those that also come at start
// come when the group subscribes, once, and the others do not.
func testWakeAtStart(t *testing.T, f Features, s Site) {
	at := time.Now().Add(240 * time.Hour).Truncate(time.Microsecond)
	plan := func(_ context.Context, tx flow.Tx, m flow.Message) error {
		switch m.Key {
		case "plain":
			tx.WakeAt(m.Key, at)
		case "back":
			tx.WakeAt(m.Key, at, flow.AtStart)
			tx.WakeAt(m.Key, at)
		default:
			tx.WakeAt(m.Key, at, flow.AtStart)
		}
		return nil
	}
	tr := s.Open(t, Config{})
	wakes, _ := consumeWakes(t, tr, plan)
	keys := []string{"plain", "back", "a", "b", "c"}
	for _, k := range keys {
		mustPublish(t, tr, testMessage("in", k, "id"+k))
	}
	waitUntilIdle(t, tr, nil)
	if len(wakes) > 0 {
		t.Errorf("%+v came though nothing was restarted", <-wakes)
	}
	mustClose(t, tr)
	tr = s.Open(t, Config{})
	wakes, stop := consumeWakes(t, tr, plan)
	var got []string
	for range 3 {
		w := receive(t, wakes, "a wake at start")
		if got = append(got, w.key); !w.askedFor.Equal(at) {
			t.Errorf("the wake of %s says %v, want %v", w.key, w.askedFor, at)
		}
	}
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the wakes of %v came at start", got)
	}
	waitUntilIdle(t, tr, nil)
	stop()
	wakes, _ = consumeWakes(t, tr, plan) // they were consumed
	expectNoDueWakes(t, tr, wakes)
}

// testWakesInState closes a transport whose group keeps its wakes in its state: those that stand there
// come after the next start, and no others.
func testWakesInState(t *testing.T, f Features, s Site) {
	c := Config{Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}, Timed: []string{"g"}}}}
	var soon time.Time
	far := time.Now().Add(240 * time.Hour).Truncate(time.Microsecond)
	set := func(tx flow.Tx, key string, at time.Time, opts ...flow.WakeOption) error {
		tx.WakeAt(key, at, opts...)
		return tx.State(key).Set(flow.WakeName, append(flow.AppendWake(nil, at, len(opts) > 0), "and more"...))
	}
	tr := s.Open(t, c)
	handled := make(chan struct{}, 10)
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		tx.OnCommit(func() { handled <- struct{}{} })
		switch {
		case m.Type == flow.TypeWake:
			return errors.New("not before reopening")
		case m.Key == "gone" && m.ID == "again":
			return set(tx, m.Key, time.Time{})
		case m.Key == "soon":
			return set(tx, m.Key, soon)
		case m.Key == "start":
			return set(tx, m.Key, far, flow.AtStart)
		}
		return set(tx, m.Key, far)
	})
	mustPublish(t, tr, testMessage("in", "start", "1"), testMessage("in", "far", "2"),
		testMessage("in", "gone", "3"), testMessage("in", "gone", "again"))
	for range 4 {
		receive(t, handled, "the commit")
	}
	soon = time.Now().Add(f.wakeDelay()).Truncate(time.Microsecond)
	mustPublish(t, tr, testMessage("in", "soon", "5")) // the last, because its wake may come before the close
	receive(t, handled, "the last commit")
	mustClose(t, tr)
	tr = s.Open(t, c)
	wakes := make(chan receivedWake, 10)
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type != flow.TypeWake {
			return nil
		}
		tx.OnCommit(func() { wakes <- receivedWake{key: m.Key, askedFor: m.Time} })
		return set(tx, m.Key, time.Time{})
	})
	got := map[string]time.Time{}
	for range 2 {
		w := receive(t, wakes, "a wake from the state")
		got[w.key] = w.askedFor
	}
	if len(got) != 2 || !got["soon"].Equal(soon) || !got["start"].Equal(far) {
		t.Errorf("got the wakes %v, want those of soon and start", got)
	}
	expectNoDueWakes(t, tr, wakes)
}

// expectNoDueWakes checks that no wake comes while the transport handles all that waits.
func expectNoDueWakes(t *testing.T, tr flow.Transport, wakes <-chan receivedWake) {
	t.Helper()
	mustPublish(t, tr, testMessage("in", "last", "last"))
	waitUntilIdle(t, tr, nil)
	select {
	case w := <-wakes:
		t.Errorf("one wake too many: %+v", w)
	default:
	}
}
