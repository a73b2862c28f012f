package sinks

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// restless is a state that is changed before it is read for the nth time, and before each
// later time if always is set.
type restless struct {
	flow.State
	n      int
	always bool
	change func()
}

func (s *restless) Get(name string) ([]byte, bool, error) {
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
				st := &restless{State: store.Begin().State("a"), n: n, change: func() {
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
	st := &restless{State: store.Begin().State("a"), always: true, change: more}
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
		if class, _ := pipeline.ClassOf(err); class != pipeline.ClassBroken {
			t.Errorf("without %s: got %v, want an error that stops the Router", lost, err)
		}
	}
}
