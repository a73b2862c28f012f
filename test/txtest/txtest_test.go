package txtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

func TestNothingOfAFailedAttemptRemains(t *testing.T) {
	s := New()
	ran := false
	fail := errors.New("no")
	p := flow.ProcessorFunc(func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if err := tx.State(m.Key).Set("a", []byte("1")); err != nil {
			return err
		}
		tx.Emit(flow.Message{ID: "out"})
		tx.WakeAt(m.Key, time.Unix(1, 0))
		tx.OnCommit(func() { ran = true })
		return fail
	})
	if err := s.Handle(context.Background(), p, flow.Message{Key: "k"}); !errors.Is(err, fail) {
		t.Fatalf("got error %v, want %v", err, fail)
	}
	if len(s.Keys()) != 0 || len(s.Take()) != 0 || ran {
		t.Errorf("got state %v, ran %v; want nothing", s.Keys(), ran)
	}
	if _, ok := s.Wake("k"); ok {
		t.Error("got a wake, want none")
	}
	fail = nil
	if err := s.Handle(context.Background(), p, flow.Message{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if v, ok := s.Value("k", "a"); !ok || string(v) != "1" || !ran || len(s.Take()) != 1 {
		t.Errorf("got %q, %v, ran %v; want all of it", v, ok, ran)
	}
	if got := s.Due(time.Unix(0, 0)); len(got) != 0 {
		t.Errorf("got wakes %v before their time", got)
	}
	if got := s.Due(time.Unix(1, 0)); len(got) != 1 || got[0].Key != "k" || got[0].Type != flow.TypeWake {
		t.Errorf("got wakes %v, want one for k", got)
	}
	if got := s.Due(time.Unix(1, 0)); len(got) != 0 {
		t.Errorf("got wakes %v a second time", got)
	}
}
