package sinks

import (
	"context"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// posted keeps what is posted.
type posted struct{ ms []flow.Message }

func (p *posted) Post(_ context.Context, m flow.Message) error {
	p.ms = append(p.ms, m)
	return nil
}

// TestEndDigests: all at once, also one whose first item is committed only afterwards.
func TestEndDigests(t *testing.T) {
	k, lane := newDesk(t), &posted{}
	k.d.cfg.Poster = lane
	end := func() {
		t.Helper()
		if err := k.d.EndDigests(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m := k.item("s", "a", hourly(0), 1)
	tx := k.store.Begin()
	if err := k.d.Process(t.Context(), tx, m); err != nil {
		t.Fatal(err)
	}
	end()
	if len(lane.ms) != 0 {
		t.Fatalf("posted %v for what nobody knows of", lane.ms)
	}
	tx.Commit()
	end()
	k.handle(lane.ms...)
	k.handle(k.item("s", "bb", hourly(0), 1))
	if got, want := k.took(), "[a] | [bb]"; got != want {
		t.Errorf("took %s, want %s", got, want)
	}
	lane.ms = nil
	if end(); len(lane.ms) != 0 {
		t.Errorf("posted %v for nothing", lane.ms)
	}
}
