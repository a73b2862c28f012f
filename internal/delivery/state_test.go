package delivery

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// changingState is a state that is changed before it is read for the nth time, and before each
// later time if always is set.
type changingState struct {
	flow.State
	n      int
	always bool
	change func()
}

func (s *changingState) Get(name string) ([]byte, bool, error) {
	if s.n--; s.n == 0 || s.n < 0 && s.always {
		s.change()
	}
	return s.State.Get(name)
}

// TestKnownWhileAttemptsEnd ends an attempt between any two reads.
func TestKnownWhileAttemptsEnd(t *testing.T) {
	for _, pending := range []int{1, 2} {
		for _, id := range []string{"n0", "n1"} {
			for n := range 12 {
				store := txtest.New()
				var flying Attempt
				d := NewDelivery(Config{Hand: func(a Attempt) { flying = a }})
				for i := range pending {
					if err := store.Handle(t.Context(), d, notification(t, "a", "", fmt.Sprint("n", i))); err != nil {
						t.Fatal(err)
					}
				}
				st := &changingState{State: store.Begin().State("a"), n: n, change: func() {
					if err := store.Handle(t.Context(), d, flying.Result(nil)); err != nil {
						t.Fatal(err)
					}
				}}
				r, ok, err := Known(st, id)
				want := id == "n0" || pending == 2
				if err != nil || ok != want {
					t.Fatalf("%s of %d, changed before read %d: got %+v, %v, %v; want it known: %v", id, pending, n, r, ok, err, want)
				}
				if ok && r.State != RecordDelivered && r.State != RecordPending || id == "n0" && r.State == RecordPending && r.Attempts != 1 {
					t.Errorf("%s of %d, changed before read %d: got %+v", id, pending, n, r)
				}
			}
		}
	}
}

// TestKnownOfABusyReceiver reads a queue that is never the same twice.
func TestKnownOfABusyReceiver(t *testing.T) {
	store := txtest.New()
	d := NewDelivery(Config{Hand: func(Attempt) {}})
	i := 0
	more := func() {
		i++
		if err := store.Handle(t.Context(), d, notification(t, "a", "", fmt.Sprint("n", i))); err != nil {
			t.Fatal(err)
		}
	}
	more()
	st := &changingState{State: store.Begin().State("a"), always: true, change: more}
	if r, ok, err := Known(st, "n1"); err != nil || !ok || r.State != RecordPending {
		t.Errorf("got %+v, %v, %v; want it pending", r, ok, err)
	}
}

// TestKnownOfADamagedQueue has a queue, or a record, that belongs to nothing.
func TestKnownOfADamagedQueue(t *testing.T) {
	for _, lost := range []string{pendingName(0), nameQueue} {
		store := txtest.New()
		d := NewDelivery(Config{Hand: func(Attempt) {}})
		if err := store.Handle(t.Context(), d, notification(t, "a", "", "x")); err != nil {
			t.Fatal(err)
		}
		tx := store.Begin()
		if err := errors.Join(tx.State("a").Delete(lost), tx.State("a").Delete(pendingName(0))); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
		_, _, err := Known(store.Begin().State("a"), "x")
		if class, _ := failure.ClassOf(err); class != failure.ClassBroken {
			t.Errorf("without %s: got %v, want an error that stops the Router", lost, err)
		}
	}
}

// TestNotes: the next attempt for the same document gets the note of a sink, also after a failure or
// a restart, until the note is too old.
func TestNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		s := &recorder{}
		s.do = func(ctx context.Context, n pipeline.Notification) error {
			a := pipeline.AttemptFrom(ctx)
			seen = append(seen, a.Document()+"="+a.Note())
			a.SetNote("root of " + n.ID)
			a.SetNote(string(make([]byte, pipeline.MaxNote+1)))
			if len(seen) == 1 {
				return errors.New("500")
			}
			return nil
		}
		store := txtest.New()
		cfg := Config{Sinks: map[string]pipeline.Sink{"a": s}, Policy: Policy{Retry: []time.Duration{time.Second}, Remember: 48 * time.Hour}}
		r := newPoolFixture(t, store, cfg)
		r.notify("a", "first")
		time.Sleep(10 * time.Second)
		r.notify("a", "second")
		time.Sleep(10 * time.Second)
		r.stop()
		r = newPoolFixture(t, store, cfg)
		r.notify("a", "third")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got, want := fmt.Sprint(seen), "[doc= doc=root of first doc=root of first doc=root of second]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		time.Sleep(5 * 24 * time.Hour)
		synctest.Wait()
		if b, ok, err := store.Begin().State("a").Get(nameNote + "doc"); ok || err != nil {
			t.Errorf("after five days the note is %q, %v", b, err)
		}
		r.stop()
	})
}

// TestDegraded: receiver_degraded is emitted once a day.
func TestDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{do: func(ctx context.Context, _ pipeline.Notification) error {
			pipeline.AttemptFrom(ctx).Degraded("the template failed")
			return nil
		}}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": s}})
		for day := range 2 {
			for i := range 3 {
				r.notify("a", fmt.Sprint(day, i))
				time.Sleep(time.Second)
			}
			time.Sleep(24 * time.Hour)
		}
		r.stop()
		if got, want := fmt.Sprint(r.events()), "[a receiver_degraded a receiver_degraded]"; got != want {
			t.Errorf("events %s, want %s", got, want)
		}
		if h := r.health[0]; h.Reason != "the template failed" {
			t.Errorf("the reason is %q", h.Reason)
		}
	})
}
