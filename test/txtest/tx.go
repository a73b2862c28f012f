package txtest

import (
	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
)

// Tx is a transaction on a Store.
type Tx struct {
	*engine.Tx[flow.Message]
	store *Store
}

var _ flow.Tx = (*Tx)(nil)

// Commit makes all that the transaction did visible at once and then runs what OnCommit was given.
func (t *Tx) Commit() {
	var after []func()
	err := t.Tx.Commit(func(e *engine.Effects[flow.Message]) error {
		after = e.OnCommit
		t.store.apply(e)
		return nil
	})
	if err != nil {
		panic("txtest: " + err.Error())
	}
	for _, f := range after {
		f()
	}
}

// Synced reports whether Sync was called.
func (t *Tx) Synced() bool { return t.Effects().Sync }

// Emitted returns what was collected so far.
func (t *Tx) Emitted() []flow.Message { return t.Effects().Out }

// oneLane makes messages outputs of a store, which has one lane.
type oneLane struct{}

func (oneLane) Lanes() int { return 1 }

func (oneLane) Output(m flow.Message) flow.Message { return m }

func (oneLane) OutputTo(m flow.Message, _ int) flow.Message { return m }

func (oneLane) Logged(string) bool { return true }

func (oneLane) Fits(*engine.Effects[flow.Message]) error { return nil }
