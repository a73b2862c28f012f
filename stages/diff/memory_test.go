package diff

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestMemoryIsAskedFor: a snapshot is compared once there is memory for its texts, which is
// given back, and is left as it is where there is none in time.
func TestMemoryIsAskedFor(t *testing.T) {
	s := snapshot(content(strings.Repeat("Zeus ", 100)), content(strings.Repeat("Argus ", 100)))
	var asked, held int64
	refusal := errors.New("stopping")
	var err error
	p := New(Config{Memory: func(_ context.Context, bytes int64) (func(), error) {
		asked = bytes
		if err != nil {
			return nil, err
		}
		held += bytes
		return func() { held -= bytes }, nil
	}})
	tx := &fakeTx{}
	if err := p.Process(t.Context(), tx, s.Message()); err != nil || len(tx.emitted) != 1 {
		t.Fatalf("%d messages and %v, want a change", len(tx.emitted), err)
	}
	if least := int64(memoryFor * (len(s.Old) + len(s.New))); asked < least || asked > 2*least || held != 0 {
		t.Errorf("asked for %d bytes, want at least %d; %d were not given back", asked, least, held)
	}
	tx, err = &fakeTx{}, refusal
	if got := p.Process(t.Context(), tx, s.Message()); !errors.Is(got, refusal) || len(tx.emitted) > 0 {
		t.Errorf("%d messages and %v, want the refusal alone", len(tx.emitted), got)
	}
}
