package index

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestMemoryIsAskedFor: a version is stored once there is memory for its text, which is given
// back; nothing is stored where there is none in time.
func TestMemoryIsAskedFor(t *testing.T) {
	var asked, held int64
	var refusal error
	d := newDesk(t, Config{Memory: func(_ context.Context, bytes int64) (func(), error) {
		if refusal != nil {
			return nil, refusal
		}
		asked = bytes
		held += bytes
		return func() { held -= bytes }, nil
	}})
	d.subscribe("c")
	first := strings.Repeat("one line\n", 100)
	d.answer(first)
	if want := int64(memoryFor * len(first)); asked != want || held != 0 {
		t.Errorf("asked for %d bytes, want %d; %d were not given back", asked, want, held)
	}
	d.wake()
	refusal = errors.New("stopping")
	m := fetched(d.request, 0, first+"another\n").Message()
	m.Position = "S/documents/0/99"
	if err := d.store.Handle(t.Context(), d.stage, m); !errors.Is(err, refusal) {
		t.Errorf("got %v, want the refusal", err)
	}
	if _, ok, err := LoadVersion(d.store.Begin().State(page), whole, 2); ok || err != nil {
		t.Errorf("there is a version 2 (%v)", err)
	}
	refusal = nil
	d.answer(first + "another\n")
	if got := d.types(); len(got) == 0 || got[0] != flow.TypeSnapshot {
		t.Errorf("got %v, want a snapshot", got)
	}
}
