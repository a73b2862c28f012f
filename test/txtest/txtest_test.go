package txtest

import (
	"context"
	"errors"
	"slices"
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

func TestAStateSeesItsOwnWrites(t *testing.T) {
	s := New()
	tx := s.Begin()
	for _, n := range []string{"a/2", "a/1", "b"} {
		if err := tx.State("k").Set(n, []byte(n)); err != nil {
			t.Fatal(err)
		}
	}
	tx.Commit()
	tx = s.Begin()
	st := tx.State("k")
	if err := st.Delete("a/1"); err != nil {
		t.Fatal(err)
	}
	if err := st.Set("a/3", nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	for n := range st.Scan("a/") {
		got = append(got, n)
	}
	if want := []string{"a/2", "a/3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, ok, _ := st.Get("a/1"); ok {
		t.Error("got a deleted value")
	}
	if got, want := s.Names("k"), []string{"a/1", "a/2", "b"}; !slices.Equal(got, want) {
		t.Errorf("committed: got %v, want %v", got, want)
	}
	tx.Reset()
	if _, ok, _ := tx.State("k").Get("a/1"); !ok {
		t.Error("Reset kept a deletion")
	}
}
