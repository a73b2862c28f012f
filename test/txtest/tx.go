package txtest

import (
	"iter"
	"maps"

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

func (oneLane) Fits(*engine.Effects[flow.Message]) error { return nil }

// reader reads what a Store keeps.
type reader struct{ s *Store }

func (r reader) Value(p engine.Place, name string) ([]byte, bool, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.states.Value(p, name)
}

func (r reader) Values(p engine.Place, prefix string) iter.Seq2[string, flow.Value] {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	values := Memory{p: maps.Clone(r.s.states[p])} // the loop may access the Store
	return values.Values(p, prefix)
}

func (r reader) Keys(group, after string) iter.Seq2[string, error] {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.states.Keys(group, after)
}
