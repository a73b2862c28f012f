package sim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
)

// recordID names a record of the state topic: kind 's' is a value, by group, key and name;
// 'p' a position, by group and topic.
type recordID struct {
	kind    byte
	a, b, c string
}

func (r recordID) compare(o recordID) int {
	return cmp.Or(cmp.Compare(r.kind, o.kind), cmp.Compare(r.a, o.a), cmp.Compare(r.b, o.b), cmp.Compare(r.c, o.c))
}

// stateRecord is one record of the state topic.
type stateRecord struct {
	recordID
	offset, step int
	gone         bool // it is a tombstone
	value        []byte
	pos          int
}

// changelog is one lane of the state topic: compacted, and with one writer at a time.
type changelog struct {
	records []stateRecord // by offset, with gaps
	next    int           // the next offset
	epoch   int           // of the last fence
	// ledger is what was done by what is committed.
	ledger
}

// tombstonesKept is for how many steps a compaction leaves tombstones at least. A copy that
// is older may lack them, and must be made anew.
const tombstonesKept = 60

func (g *changelog) append(r stateRecord, step int) {
	r.offset, r.step = g.next, step
	g.next++
	g.records = append(g.records, r)
}

// compact leaves the last record of each name, but for the last keep offsets, where all
// stay. Tombstones that are old enough vanish.
func (g *changelog) compact(step, keep int) {
	last := make(map[recordID]int, len(g.records))
	for _, r := range g.records {
		last[r.recordID] = r.offset
	}
	g.records = slices.DeleteFunc(g.records, func(r stateRecord) bool {
		return r.offset < g.next-keep && (last[r.recordID] != r.offset || r.gone && step-r.step > tombstonesKept)
	})
}

// changes returns the records of what changed in l since its last transaction, in an order
// that does not change.
func (l *lane) changes() []stateRecord {
	var rs []stateRecord
	for _, id := range slices.SortedFunc(maps.Keys(l.dirty), recordID.compare) {
		r := stateRecord{recordID: id}
		switch id.kind {
		case 's':
			v, ok, _ := l.state.Value(engine.Place{Group: id.a, Key: id.b}, id.c)
			r.value, r.gone = v, !ok
		case 'p':
			r.pos = l.pos[consumerID{id.a, id.b}]
		}
		rs = append(rs, r)
	}
	return rs
}

// take makes r part of the copy.
func (l *lane) take(r stateRecord) {
	switch r.kind {
	case 's':
		l.state.Set(engine.Place{Group: r.a, Key: r.b}, r.c, r.value) // nil if it is gone
		if r.c == flow.WakeName {
			l.restoreWake(r.a, r.b, r.value)
		}
	case 'p':
		l.pos[consumerID{r.a, r.b}] = r.pos
	}
	l.at = r.offset + 1
}

// restoreWake restores the wake of key from the value that begins with it, in the state of a group.
func (l *lane) restoreWake(in, key string, value []byte) {
	id := wakeID{timed, key}
	if group, topic, ok := engine.CutWakeGroup(in); ok {
		id.consumerID = consumerID{group, topic}
	}
	if w, err := keptWake(value); err == nil && !w.at.IsZero() {
		l.wakes[id] = w
	} else {
		delete(l.wakes, id)
	}
}

// missing returns what the copy in l lacks of g.
func (g *changelog) missing(l *lane) []stateRecord {
	at, _ := slices.BinarySearchFunc(g.records, l.at, func(r stateRecord, at int) int { return cmp.Compare(r.offset, at) })
	return slices.Clone(g.records[at:])
}
