package sim

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/vokter/vokter/internal/engine"
)

// stateRecord is one record of the state topic: a value of state, or a position. A nil value is a tombstone.
type stateRecord struct {
	engine.Write
	offset, step int
	lazy         bool // nobody waits for it
}

// positionsGroup is the group in whose state positions are, one for each consumer.
const positionsGroup = "positions"

func positionRecord(c consumer, at int) stateRecord {
	return stateRecord{Write: engine.Write{Place: engine.Place{Group: positionsGroup, Key: c.Group}, Name: c.Topic, Value: []byte(strconv.Itoa(at))}}
}

// position is the next message that c handles.
func (l *lane) position(c consumer) int {
	p := positionRecord(c, 0)
	v, _, _ := l.state.Value(p.Place, p.Name)
	at, _ := strconv.Atoi(string(v)) // 0 where there is none
	return at
}

func (r stateRecord) compare(o stateRecord) int {
	return cmp.Or(cmp.Compare(r.Place.Group, o.Place.Group), cmp.Compare(r.Place.Key, o.Place.Key), cmp.Compare(r.Name, o.Name))
}

// changelog is one lane of the state topic: compacted, and with one writer at a time.
type changelog struct {
	records    []stateRecord // by offset, with gaps
	nextOffset int           // the next offset
	epoch      int           // of the last fence
	// laneHistory is what was done in the lane, as far as it is committed.
	laneHistory
}

// tombstonesKept is for how many steps a compaction leaves tombstones at least. A copy that
// is older may lack them, and must be made anew.
const tombstonesKept = 60

func (g *changelog) append(r stateRecord, step int) {
	r.offset, r.step = g.nextOffset, step
	g.nextOffset++
	g.records = append(g.records, r)
}

// compact leaves the last record of each name, but for the last keep offsets, where all
// stay. Tombstones that are old enough vanish.
func (g *changelog) compact(step, keep int) {
	type id struct {
		engine.Place
		name string
	}
	last := make(map[id]int, len(g.records))
	for _, r := range g.records {
		last[id{r.Place, r.Name}] = r.offset
	}
	g.records = slices.DeleteFunc(g.records, func(r stateRecord) bool {
		return r.offset < g.nextOffset-keep && (last[id{r.Place, r.Name}] != r.offset || r.Value == nil && step-r.step > tombstonesKept)
	})
}

// applyRecord makes r part of the copy.
func (l *lane) applyRecord(r stateRecord) {
	l.state.Set(r.Place, r.Name, r.Value)
	l.nextOffset = r.offset + 1
}

// missingRecords returns what the copy in l lacks of g.
func (g *changelog) missingRecords(l *lane) []stateRecord {
	at, _ := slices.BinarySearchFunc(g.records, l.nextOffset, func(r stateRecord, at int) int { return cmp.Compare(r.offset, at) })
	return slices.Clone(g.records[at:])
}
