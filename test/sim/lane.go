package sim

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// undoLog takes back the changes that are not durable, the last first.
type undoLog struct{ undos []func() }

func (u *undoLog) add(f func()) { u.undos = append(u.undos, f) }

// isPending reports whether there is anything that is not durable.
func (u *undoLog) isPending() bool { return len(u.undos) > 0 }

// makeDurable makes all changes so far durable.
func (u *undoLog) makeDurable() { u.undos = nil }

// rollback takes back all changes that are not durable.
func (u *undoLog) rollback() {
	for _, f := range slices.Backward(u.undos) {
		f()
	}
	u.undos = nil
}

// consumer is a consumer group on one topic.
type consumer = engine.Consumer

// stateWakesConsumer is the consumer that keeps its wakes in its own state.
var stateWakesConsumer = consumer{Group: flow.GroupIndex, Topic: flow.TopicDocuments}

// wakeGroup is the group in whose state the wakes of c are.
func wakeGroup(c consumer) string {
	if c == stateWakesConsumer {
		return c.Group
	}
	return engine.WakeGroup(c.Group, c.Topic)
}

// laneHistory is what was done in a lane, to compare it with what must have been done: entries is what index
// did, by page, and receivers is what delivery did, by receiver.
type laneHistory struct {
	entries   map[string][]indexEntry
	receivers map[string]receiverModel
}

// copy returns a copy that can be written to.
func (l laneHistory) copy() laneHistory {
	c := laneHistory{make(map[string][]indexEntry, len(l.entries)), maps.Clone(l.receivers)}
	for page, es := range l.entries {
		c.entries[page] = slices.Clone(es) // a power cut lets the other one overwrite its end
	}
	if c.receivers == nil {
		c.receivers = make(map[string]receiverModel)
	}
	return c
}

// lane is what a process knows of one lane: the state of all groups, with their positions and wakes.
// On Kafka it is a copy of what the state topic holds, and what came since lies over it.
type lane struct {
	id    int
	state txtest.Memory
	// wakes are those in the state, and backlog is how many messages each log had when the process got the
	// lane: wakes come behind these.
	wakes   map[consumer]*engine.Wakes
	backlog map[consumer]int
	laneHistory
	undo  *undoLog
	owner *process // that owns it, or believes to
	// tenure tells apart the times in which processes own lanes.
	tenure int

	// Of a lane on Kafka only.
	epoch           int           // of the last fence when the lane was gained
	nextOffset      int           // the first record of the state topic that the copy lacks
	completeAtStep  int           // the last step at which it was known to be complete
	durableCopy     *lane         // the copy as a power cut leaves it
	withheldRecords []stateRecord // that a faulty restore left for later
	batch           batch
}

// batch is what becomes one transaction.
type batch struct {
	records  []stateRecord
	outputs  []routedMessage
	onCommit []func()
	messages int // messages handled
	limit    int
	urgent   bool // somebody waits for it
	beganAt  time.Time
	results  []attemptResult // that were handled
}

func newLane(id int, undo *undoLog) *lane {
	return &lane{
		id: id, state: make(txtest.Memory), undo: undo, laneHistory: laneHistory{}.copy(),
		wakes: make(map[consumer]*engine.Wakes), backlog: make(map[consumer]int),
	}
}

// copy returns a copy of what l knows, which shares nothing that is written to.
func (l *lane) copy(undo *undoLog) *lane {
	c := newLane(l.id, undo)
	c.state, c.laneHistory = l.state.Clone(), l.laneHistory.copy()
	c.tenure, c.nextOffset, c.completeAtStep = l.tenure, l.nextOffset, l.completeAtStep
	return c
}

// apply makes what x wrote and asked for part of l, and the position behind its message where that came
// from the log. It returns what changed.
func (l *lane) apply(h workItem, x *tx, lazy bool) []stateRecord {
	var changed []stateRecord
	set := func(p engine.Place, name string, v []byte) {
		old, _, _ := l.state.Value(p, name)
		l.undo.add(func() { l.state.Set(p, name, old) })
		l.state.Set(p, name, v)
		changed = append(changed, stateRecord{Write: engine.Write{Place: p, Name: name, Value: v}, lazy: lazy})
	}
	for w := range x.effects.Writes.All() {
		set(w.Place, w.Name, w.Value)
	}
	setWake := func(c consumer, w engine.Wake) {
		l.wakes[c].Set(w)
		if c != stateWakesConsumer {
			set(engine.Place{Group: wakeGroup(c), Key: w.Key}, flow.WakeName, w.Value())
		}
	}
	for _, w := range x.effects.Wakes {
		setWake(x.consumer, w)
	}
	for _, w := range x.effects.LinkWakes {
		setWake(w.Consumer, w.Wake)
	}
	if h.kind == engine.FromLog {
		p := positionRecord(x.consumer, h.offset+1)
		set(p.Place, p.Name, p.Value)
	}
	slices.SortFunc(changed, stateRecord.compare)
	return changed
}

// stateKeys lists the keys for which a group has state, in order.
func (l *lane) stateKeys(group string) []string {
	var keys []string
	for p := range l.state {
		if p.Group == group {
			keys = append(keys, p.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// startWakes restores the wakes from the state, and makes those come that come at the start.
func (l *lane) startWakes() {
	for _, c := range wakers {
		kept := func(yield func(string, flow.Value) bool) {
			for _, key := range l.stateKeys(wakeGroup(c)) {
				v, ok, _ := l.state.Value(engine.Place{Group: wakeGroup(c), Key: key}, flow.WakeName)
				if ok && !yield(key, flow.Value{Bytes: v}) {
					return
				}
			}
		}
		l.wakes[c] = engine.NewWakes()
		if err := l.wakes[c].Restore(kept); err != nil {
			panic("sim: " + err.Error()) // what was stored can be read
		}
		l.wakes[c].Start()
	}
}

// links returns the links of the chain.
func (l *lane) links() (links []*engine.Link) {
	for _, c := range chain.Behind(chain.Head) {
		links = append(links, &engine.Link{Consumer: c, Wakes: l.wakes[c]})
	}
	return links
}

// pendingWakes yields the wakes that are set.
func (l *lane) pendingWakes() iter.Seq2[consumer, engine.Wake] {
	return func(yield func(consumer, engine.Wake) bool) {
		for _, c := range wakers {
			for _, key := range l.stateKeys(wakeGroup(c)) {
				if wk := l.wakes[c].Get(key); !wk.At.IsZero() && !yield(c, wk) {
					return
				}
			}
		}
	}
}

// routedMessage is a message on its way, and the lane that it goes to.
type routedMessage struct {
	flow.Message
	lane int
}
