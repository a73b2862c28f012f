package match

import (
	"context"
	"errors"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestMemoryIsAskedFor: a change is read once there is memory for it, which is given back.
func TestMemoryIsAskedFor(t *testing.T) {
	var asked, held int64
	var refusal error
	h := newHouse(t, Config{Memory: func(_ context.Context, bytes int64) (func(), error) {
		if refusal != nil {
			return nil, refusal
		}
		asked = bytes
		held += bytes
		return func() { held -= bytes }, nil
	}})
	h.stamp(stamped(1, 1, 0, pipeline.Forever, "argus"))
	c := changed(2, 1, "argus")
	if told, err := h.try(c); err != nil || len(told) == 0 {
		t.Fatalf("told %v, %v", told, err)
	}
	if want := int64(memoryFor * len(body(flow.TypeChange, c).Body)); asked != want || held != 0 {
		t.Errorf("asked for %d bytes, want %d; %d were not given back", asked, want, held)
	}
	refusal = errors.New("stopping")
	if _, err := h.try(changed(3, 1, "argus")); !errors.Is(err, refusal) {
		t.Errorf("got %v, want the refusal", err)
	}
}
