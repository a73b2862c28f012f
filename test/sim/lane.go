package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// undoing is what takes back the changes that are not durable, in their order.
type undoing struct{ fs []func() }

func (u *undoing) add(f func()) { u.fs = append(u.fs, f) }

// some reports whether there is anything that is not durable.
func (u *undoing) some() bool { return len(u.fs) > 0 }

// settle makes all changes so far durable.
func (u *undoing) settle() { u.fs = nil }

// rollback takes back all changes that are not durable.
func (u *undoing) rollback() {
	for _, f := range slices.Backward(u.fs) {
		f()
	}
	u.fs = nil
}

// consumerID is a consumer group on one topic.
type consumerID struct{ group, topic string }

func (c consumerID) String() string { return c.group + "<" + c.topic }

// timed is the consumer that keeps its wakes in its state.
var timed = consumerID{flow.GroupIndex, flow.TopicDocuments}

// keptWake returns the wake that stands in value; it is zero without a value.
func keptWake(value []byte) (w wake, err error) {
	if value != nil {
		w.at, w.atStart, _, err = flow.CutWake(value)
	}
	return w, err
}

type wakeID struct {
	consumerID
	key string
}

type wake struct {
	at      time.Time
	atStart bool
	// behind is where its consumer must stand before it comes.
	behind int
}

// ledger is what was done in a lane, for the comparison with what must have been: history is what index did, by page, and books what delivery did, by receiver.
type ledger struct {
	history map[string][]entry
	books   map[string]book
}

// copy returns a copy that can be written to.
func (l ledger) copy() ledger {
	c := ledger{make(map[string][]entry, len(l.history)), maps.Clone(l.books)}
	for page, es := range l.history {
		c.history[page] = slices.Clone(es) // a power cut lets the other one overwrite its end
	}
	if c.books == nil {
		c.books = make(map[string]book)
	}
	return c
}

// lane is what a process knows of one lane: the state of all groups, positions and wakes.
// On Kafka it is a copy of what the state topic holds, and what came since lies over it.
type lane struct {
	id    int
	state txtest.Memory
	pos   map[consumerID]int // the next message to handle
	wakes map[wakeID]wake
	ledger
	undo *undoing
	// tenure tells apart the times in which processes own lanes.
	tenure int

	// Of a lane on Kafka only.
	dirty  map[recordID]bool // changed since the last transaction; true where only lazily
	epoch  int               // as it was when the lane was gained
	at     int               // up to which offset of the state topic the copy knows it
	synced int               // at which step it was known to be complete
	saved  *lane             // the copy as a power cut leaves it
	rest   []stateRecord     // that a faulty restore left for later
	batch  batch
}

// batch is what becomes one transaction.
type batch struct {
	out     []laned
	after   []func()
	n       int // messages handled
	limit   int
	urgent  bool // somebody waits for it
	began   time.Time
	results []posted // that were handled
}

func newLane(id int, undo *undoing) *lane {
	l := &lane{id: id, undo: undo, ledger: ledger{}.copy(), dirty: make(map[recordID]bool)}
	l.clear()
	return l
}

// clear forgets what the copy knows.
func (l *lane) clear() {
	l.state = make(txtest.Memory)
	l.pos = make(map[consumerID]int)
	l.wakes = make(map[wakeID]wake)
	l.at = 0
}

// copy returns a copy of what l knows, which shares nothing that is written to.
func (l *lane) copy(undo *undoing) *lane {
	c := newLane(l.id, undo)
	c.state = l.state.Clone()
	c.pos, c.wakes, c.ledger = maps.Clone(l.pos), maps.Clone(l.wakes), l.ledger.copy()
	c.tenure, c.at, c.synced = l.tenure, l.at, l.synced
	return c
}

// touch notes that a record changed. What was written durably stays so.
func (l *lane) touch(id recordID, lazy bool) {
	was, ok := l.dirty[id]
	l.dirty[id] = lazy && (was || !ok)
}

// apply makes what x wrote and asked for part of l, and the position behind at where the
// message came from there; at is negative where it came from no log.
func (l *lane) apply(x *tx, at int, lazy bool) {
	for w := range x.did.Writes.All() {
		l.set(w.Place, w.Name, w.Value, lazy)
	}
	for _, w := range x.did.Wakes {
		l.setWake(wakeID{x.c, w.Key}, wake{at: w.At, atStart: w.AtStart})
		if x.c != timed {
			l.set(engine.Place{Group: engine.WakeGroup(x.c.group, x.c.topic), Key: w.Key}, flow.WakeName, w.Value(), lazy)
		}
	}
	if at >= 0 {
		old := l.pos[x.c]
		l.pos[x.c] = at + 1
		l.undo.add(func() { l.pos[x.c] = old })
		l.touch(recordID{'p', x.c.group, x.c.topic, ""}, lazy)
	}
}

// set stores a value; nil deletes.
func (l *lane) set(p engine.Place, name string, v []byte, lazy bool) {
	old, _, _ := l.state.Value(p, name)
	l.undo.add(func() { l.state.Set(p, name, old) })
	l.state.Set(p, name, v)
	l.touch(recordID{'s', p.Group, p.Key, name}, lazy)
}

// setWake sets a wake, or takes it back where w.at is zero.
func (l *lane) setWake(id wakeID, w wake) {
	old, was := l.wakes[id]
	l.undo.add(func() {
		if was {
			l.wakes[id] = old
		} else {
			delete(l.wakes, id)
		}
	})
	if w.at.IsZero() {
		delete(l.wakes, id)
	} else {
		l.wakes[id] = w
	}
}

// wakesInOrder lists the wakes that are set.
func (l *lane) wakesInOrder() []wakeID {
	return slices.SortedFunc(maps.Keys(l.wakes), func(a, b wakeID) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.topic, b.topic), cmp.Compare(a.key, b.key))
	})
}

// start makes the wakes come that come at the start; behind says behind which message.
func (l *lane) start(now time.Time, behind func(consumerID) int) {
	for id, wk := range l.wakes {
		if wk.atStart && wk.at.After(now) {
			l.wakes[id] = wake{start.Add(-24 * time.Hour), true, behind(id.consumerID)} // at once, whatever the clock does
		}
	}
}

// laned is a message on its way, and the lane that it goes to.
type laned struct {
	flow.Message
	lane int
}
