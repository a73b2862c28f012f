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

// woken is a wake that came.
type woken struct {
	key, id string
	at      time.Time // asked for
	came    time.Time
}

// sleeper consumes "in": messages run plan, unless it is nil, wakes are sent to the channel.
func sleeper(t *testing.T, tr flow.Transport, plan handler) (<-chan woken, func()) {
	wakes := make(chan woken, 100)
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
		w := woken{m.Key, m.ID, m.Time, time.Now()}
		tx.OnCommit(func() { wakes <- w })
		return nil
	})
	return wakes, stop
}

// delay is how far ahead wakes are set: far where waiting takes no time.
func (f Features) delay() time.Duration {
	if f.Bubble {
		return guard / 3
	}
	return soon
}

func testWakesOnce(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	base := time.Now().Add(f.delay()).Truncate(time.Microsecond)
	keys := []string{"a", "b", "c", "d", "\x00", ""}
	wakes, _ := sleeper(t, tr, func(_ context.Context, tx flow.Tx, m flow.Message) error {
		tx.WakeAt(m.Key, base.Add(time.Duration(slices.Index(keys, m.Key))*time.Millisecond))
		return nil
	})
	for _, k := range keys {
		publish(t, tr, text("in", k, "id"+k))
	}
	ids := map[string]bool{}
	for range keys {
		w := await(t, wakes, "a wake")
		if want := base.Add(time.Duration(slices.Index(keys, w.key)) * time.Millisecond); !w.at.Equal(want) {
			t.Errorf("the wake of %q says %v, want %v", w.key, w.at, want)
		}
		if w.came.Before(w.at) {
			t.Errorf("the wake of %q came %v early", w.key, w.at.Sub(w.came))
		}
		if ids[w.id] {
			t.Errorf("two wakes have the ID %s", w.id)
		}
		ids[w.id] = true
	}
	noMore(t, f, tr, wakes)
}

// noMore checks that no wake comes until after one that is set now.
func noMore(t *testing.T, f Features, tr flow.Transport, wakes <-chan woken) {
	t.Helper()
	settle(t, tr, nil)
	end := make(chan struct{})
	consume(t, tr, "last", "last", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type == flow.TypeWake {
			tx.OnCommit(func() { close(end) })
			return nil
		}
		tx.WakeAt("k", time.Now().Add(2*f.delay()))
		return nil
	})
	publish(t, tr, text("last", "k", "last"))
	await(t, end, "the last wake")
	settle(t, tr, nil)
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
	early, late := now.Add(f.delay()), now.Add(2*f.delay())
	far := late.Add(time.Hour)
	wakes, _ := sleeper(t, tr, func(_ context.Context, tx flow.Tx, m flow.Message) error {
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
		publish(t, tr, numbered("in", k, 2)...)
	}
	for range len(want) {
		w := await(t, wakes, "a wake")
		if !w.at.Equal(want[w.key]) {
			t.Errorf("the wake of %q says %v, want %v", w.key, w.at, want[w.key])
		}
		delete(want, w.key)
	}
	noMore(t, f, tr, wakes)
}

// testWakeRejected rejects a wake, and sets it again while it handles it.
func testWakeRejected(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	base := time.Now().Add(f.delay()).Truncate(time.Microsecond)
	done := make(chan struct{})
	var seen journal
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type != flow.TypeWake {
			tx.WakeAt("k", base)
			return nil
		}
		seen.add("k", m.Time.Sub(base).String())
		switch n := len(seen.of("k")); n {
		case 1:
			return errors.New("rejected")
		case 2, 3:
			tx.WakeAt("k", base.Add(time.Duration(n)*time.Millisecond))
		default:
			tx.OnCommit(func() { close(done) })
		}
		return nil
	})
	publish(t, tr, text("in", "k", "1"))
	await(t, done, "the last wake")
	noMore(t, f, tr, nil)
	seen.want(t, "k", "0s", "0s", "2ms", "3ms")
}

// testWakeInThePast sets wakes that are long due, each earlier than one that was handled.
func testWakeInThePast(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	base := time.Now().Truncate(time.Microsecond)
	wakes, _ := sleeper(t, tr, func(_ context.Context, tx flow.Tx, m flow.Message) error {
		tx.WakeAt(m.Key, m.Time)
		return nil
	})
	for i := range 4 {
		m := text("in", "k", fmt.Sprint(i))
		m.Time = base.Add(-time.Duration(i) * time.Hour)
		publish(t, tr, m)
		if w := await(t, wakes, "a wake that is due"); !w.at.Equal(m.Time) {
			t.Errorf("the wake says %v, want %v", w.at, m.Time)
		}
	}
	noMore(t, f, tr, wakes)
}

func testWakeSurvivesReopen(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	at := time.Now().Add(f.delay()).Truncate(time.Microsecond)
	set := make(chan struct{})
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type == flow.TypeWake {
			return errors.New("not before reopening")
		}
		tx.WakeAt(m.Key, at)
		tx.OnCommit(func() { close(set) })
		return nil
	})
	publish(t, tr, text("in", "k", "1"))
	await(t, set, "the commit")
	mustClose(t, tr)
	tr = s.Open(t, Config{})
	wakes, _ := sleeper(t, tr, nil)
	if w := await(t, wakes, "the wake"); w.key != "k" || !w.at.Equal(at) || w.came.Before(at) {
		t.Errorf("the wake came as %+v, want one at %v", w, at)
	}
	noMore(t, f, tr, wakes)
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
	wakes, _ := sleeper(t, tr, plan)
	keys := []string{"plain", "back", "a", "b", "c"}
	for _, k := range keys {
		publish(t, tr, text("in", k, "id"+k))
	}
	settle(t, tr, nil)
	if len(wakes) > 0 {
		t.Errorf("%+v came though nothing was restarted", <-wakes)
	}
	mustClose(t, tr)
	tr = s.Open(t, Config{})
	wakes, stop := sleeper(t, tr, plan)
	var got []string
	for range 3 {
		w := await(t, wakes, "a wake at start")
		if got = append(got, w.key); !w.at.Equal(at) {
			t.Errorf("the wake of %s says %v, want %v", w.key, w.at, at)
		}
	}
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the wakes of %v came at start", got)
	}
	settle(t, tr, nil)
	stop()
	wakes, _ = sleeper(t, tr, plan) // they were consumed
	noMoreSoon(t, tr, wakes)
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
	publish(t, tr, text("in", "start", "1"), text("in", "far", "2"), text("in", "gone", "3"), text("in", "gone", "again"))
	for range 4 {
		await(t, handled, "the commit")
	}
	soon = time.Now().Add(f.delay()).Truncate(time.Microsecond)
	publish(t, tr, text("in", "soon", "5")) // the last, because its wake may come before the close
	await(t, handled, "the last commit")
	mustClose(t, tr)
	tr = s.Open(t, c)
	wakes := make(chan woken, 10)
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type != flow.TypeWake {
			return nil
		}
		tx.OnCommit(func() { wakes <- woken{key: m.Key, at: m.Time} })
		return set(tx, m.Key, time.Time{})
	})
	got := map[string]time.Time{}
	for range 2 {
		w := await(t, wakes, "a wake from the state")
		got[w.key] = w.at
	}
	if len(got) != 2 || !got["soon"].Equal(soon) || !got["start"].Equal(far) {
		t.Errorf("got the wakes %v, want those of soon and start", got)
	}
	noMoreSoon(t, tr, wakes)
}

// noMoreSoon checks that no wake comes though everything else does.
func noMoreSoon(t *testing.T, tr flow.Transport, wakes <-chan woken) {
	t.Helper()
	publish(t, tr, text("in", "last", "last"))
	settle(t, tr, nil)
	select {
	case w := <-wakes:
		t.Errorf("one wake too many: %+v", w)
	default:
	}
}
