package vokter

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/vokter/vokter/internal/span"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// TestHandingOver: a request for a host of this process reaches fetch after the commit, with the trace
// of the message that caused it, and in no other way. Others are published.
func TestHandingOver(t *testing.T) {
	var taken []string
	take := func(m flow.Message) { taken = append(taken, m.Key+" "+m.Trace) }
	owns := func(key string) bool { return key == "mine.example" }
	fail := errors.New("no")
	asks := flow.ProcessorFunc(func(_ context.Context, tx flow.Tx, _ flow.Message) error {
		tx.Emit(flow.Message{ID: "1", Topic: flow.TopicRequests, Key: "mine.example"})
		tx.Emit(flow.Message{ID: "2", Topic: flow.TopicRequests, Key: "other.example"})
		tx.Emit(flow.Message{ID: "3", Topic: flow.TopicSnapshots, Key: "mine.example"})
		if len(taken) > 0 {
			t.Errorf("%q were taken before the commit", taken)
		}
		return fail
	})
	p := handOverRequests(owns, take)(traceMessages("g", span.Tracer{})(asks))
	s := txtest.New()
	m := flow.Message{ID: "m", Key: "k", Trace: "00-aa-bb-01"}
	if err := s.Handle(t.Context(), p, m); !errors.Is(err, fail) || len(taken) > 0 {
		t.Fatalf("got %v, and %q were taken; want %v and none", err, taken, fail)
	}
	fail = nil
	if err := s.Handle(t.Context(), p, m); err != nil {
		t.Fatal(err)
	}
	if want := []string{"mine.example 00-aa-bb-01"}; !slices.Equal(taken, want) {
		t.Errorf("%q were taken, want %q", taken, want)
	}
	var emitted []string
	for _, m := range s.Take() {
		emitted = append(emitted, m.ID)
	}
	if want := []string{"2", "3"}; !slices.Equal(emitted, want) {
		t.Errorf("emitted %q, want %q", emitted, want)
	}
}
