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

// positions is the group in whose state positions are, one for each consumer.
const positions = "positions"

func position(c consumer, at int) stateRecord {
	return stateRecord{Write: engine.Write{Place: engine.Place{Group: positions, Key: c.Group}, Name: c.Topic, Value: []byte(strconv.Itoa(at))}}
}

// position is the next message that c handles.
func (l *lane) position(c consumer) int {
	p := position(c, 0)
	v, _, _ := l.state.Value(p.Place, p.Name)
	at, _ := strconv.Atoi(string(v)) // 0 where there is none
	return at
}

func (r stateRecord) compare(o stateRecord) int {
	return cmp.Or(cmp.Compare(r.Place.Group, o.Place.Group), cmp.Compare(r.Place.Key, o.Place.Key), cmp.Compare(r.Name, o.Name))
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
	type id struct {
		engine.Place
		name string
	}
	last := make(map[id]int, len(g.records))
	for _, r := range g.records {
		last[id{r.Place, r.Name}] = r.offset
	}
	g.records = slices.DeleteFunc(g.records, func(r stateRecord) bool {
		return r.offset < g.next-keep && (last[id{r.Place, r.Name}] != r.offset || r.Value == nil && step-r.step > tombstonesKept)
	})
}

// take makes r part of the copy.
func (l *lane) take(r stateRecord) {
	l.state.Set(r.Place, r.Name, r.Value)
	l.at = r.offset + 1
}

// missing returns what the copy in l lacks of g.
func (g *changelog) missing(l *lane) []stateRecord {
	at, _ := slices.BinarySearchFunc(g.records, l.at, func(r stateRecord, at int) int { return cmp.Compare(r.offset, at) })
	return slices.Clone(g.records[at:])
}
