package local

import (
	"iter"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
)

// reader reads state from the store, and lists the keys of a lane.
type reader struct {
	t    *Transport
	lane int
}

var _ engine.Reader = reader{}

func (r reader) Value(p engine.Place, name string) (value []byte, ok bool, err error) {
	return r.t.db.GetState(p.Group, r.t.laneOf(p.Key), p.Key, name)
}

func (r reader) Values(p engine.Place, prefix string) iter.Seq2[string, flow.Value] {
	return r.t.db.ScanState(p.Group, r.t.laneOf(p.Key), p.Key, prefix)
}

func (r reader) Keys(group, after string) iter.Seq2[string, error] {
	return r.t.db.LaneStateKeys(group, r.lane, flow.KeyName(r.t.cfg.Topics, group), after)
}

// State returns the committed state of group for key. It is read-only.
func (t *Transport) State(group, key string) flow.State {
	return engine.View(reader{t: t}, engine.Place{Group: group, Key: key})
}

// States yields the keys behind after for which group keeps state, in order, each with its committed
// state. It does not read the values. If the store fails, the last pair is an empty
// key and a state whose reads fail.
func (t *Transport) States(group, after string) iter.Seq2[string, flow.State] {
	return engine.Views(group, t.db.StateKeys(group, flow.KeyName(t.cfg.Topics, group), after), reader{t: t})
}
