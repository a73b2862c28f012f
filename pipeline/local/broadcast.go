package local

import (
	"iter"
	"strconv"

	"github.com/vokter/vokter/pipeline/flow"
)

// EmitAll collects a copy of m for each lane.
func (x *tx) EmitAll(m flow.Message) {
	id := m.ID
	for i, l := range x.t.topic(m.Topic).lanes {
		m.ID, m.Key = flow.DeriveID("lane", id, strconv.Itoa(i)), ""
		o := x.t.output(m)
		o.lane = l
		x.collect(o)
	}
}

// Neighbours yields the keys in the lane of x's message for which group keeps state. A
// store's failure ends it as it ends Transport.States.
func (x *tx) Neighbours(group string) iter.Seq2[string, flow.State] {
	return x.t.views(group, x.t.db.LaneStateKeys(group, x.cur.lane.index))
}
