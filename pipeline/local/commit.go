package local

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/flow"
)

// errSubscriptionEnded says that a commit was abandoned because the subscription ends.
var errSubscriptionEnded = errors.New("local: the subscription ends")

// Admit makes a message wait for the OnCommit functions of the previous one of its key.
func (c *cursor) Admit(w engine.Work) <-chan struct{} { return c.pendingCommits.admit(w.Key()) }

// Commit makes the effects of x visible, together with the position of its message. Its OnCommit
// functions run at once, or, where the handler asked for a durable commit, when it is durable; they
// follow those of all earlier commits.
func (c *cursor) Commit(_ context.Context, x *engine.Tx[output], stopping <-chan struct{}) (done, over bool) {
	t := c.consumer.transport
	l := &pendingCommit{key: x.Work.Key()}
	var out []output
	err := x.Commit(func(e *engine.Effects[output]) (err error) {
		out, l.onCommit = e.Out, e.OnCommit
		l.wait, err = c.applyEffects(x.Work, e, stopping)
		return err
	})
	switch {
	case errors.Is(err, errSubscriptionEnded):
		return false, true
	case err != nil:
		c.reportFailure("a commit failed", err)
		return false, false
	}
	if l.wait != nil || c.pendingCommits.oldestDone() != nil {
		c.pendingCommits.add(l, func() { t.activity.Add(1) })
	} else {
		l.runOnCommit()
	}
	if x.Work.Kind == engine.FromLog {
		c.advance()
	}
	t.activity.Add(1)
	t.applyRetention(out)
	return true, false
}

// applyEffects makes e visible. If the handler asked for a durable commit and that takes time, it is durable when
// wait returns; otherwise wait is nil.
func (c *cursor) applyEffects(w engine.Work, e *engine.Effects[output], stopping <-chan struct{}) (wait func(), err error) {
	t, own := c.consumer.transport, c.lane
	lanes := lanesInLockOrder(e.Out)
	room := func(l *laneLog) bool {
		return l.topic.declared.Feedback && !own.topic.declared.Entry || !l.isFull(t.cfg.Bound)
	}
	if err := t.lockWithRoom(lanes, room, stopping, nil); err != nil {
		return nil, err
	}
	defer unlockLanes(lanes)
	moves := w.Kind == engine.FromLog && !own.topic.volatile
	stored := e.Wakes
	if c.consumer.timed {
		stored = nil
	}
	if moves || len(stored)+len(e.LinkWakes) > 0 || !e.Writes.Empty() || slices.ContainsFunc(e.Out, output.isStored) {
		wait, err = t.writeOutputs(e.Sync, e.Out, func(b *store.Batch) {
			for w := range e.Writes.All() {
				setState(b, w.Place.Group, t.laneOf(w.Place.Key), w.Place.Key, w.Name, w.Value)
			}
			for _, w := range stored {
				setState(b, c.consumer.wakeGroup(), own.index, w.Key, flow.WakeName, w.Value())
			}
			for _, w := range e.LinkWakes {
				setState(b, engine.WakeGroup(w.Group, w.Topic), own.index, w.Key, flow.WakeName, w.Value())
			}
			t.saveClock(b, false)
			if moves {
				b.SetPosition(c.consumer.group, own.topic.name, own.index, c.peeked.Offset+1)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	t.pushOutputs(e.Out)
	for _, w := range e.Wakes {
		c.wakes.Set(w)
	}
	for _, w := range e.LinkWakes {
		w.Wakes.Set(w.Wake)
	}
	return wait, nil
}

// setState stores value under name; a nil value deletes.
func setState(b *store.Batch, group string, lane int, key, name string, value []byte) {
	if value == nil {
		b.DeleteState(group, lane, key, name)
	} else {
		b.SetState(group, lane, key, name, value)
	}
}

// lanesInLockOrder returns the lanes of out in locking order.
func lanesInLockOrder(out []output) []*laneLog {
	var lanes []*laneLog
	for _, o := range out {
		if !slices.Contains(lanes, o.lane) {
			lanes = append(lanes, o.lane)
		}
	}
	slices.SortFunc(lanes, func(a, b *laneLog) int { return a.lockOrder - b.lockOrder })
	return lanes
}

// lockWithRoom waits until all lanes have room and locks them. It returns errSubscriptionEnded if one of
// the channels is closed before.
func (t *Transport) lockWithRoom(lanes []*laneLog, room func(*laneLog) bool, cancel, stop <-chan struct{}) error {
	for {
		var wait <-chan struct{}
		for _, l := range lanes {
			l.mu.Lock()
			if wait == nil && !room(l) {
				wait = l.roomChannel()
			}
		}
		if wait == nil {
			return nil
		}
		unlockLanes(lanes)
		select {
		case <-wait:
		case <-cancel:
			return errSubscriptionEnded
		case <-stop:
			return errSubscriptionEnded
		}
	}
}

func unlockLanes(lanes []*laneLog) {
	for _, l := range lanes {
		l.mu.Unlock()
	}
}

// writeOutputs commits the stored messages of out, each at the next offset of its lane, and what more writes. With
// sync they are durable when wait returns; wait is nil if there is nothing to wait for. The caller holds
// the locks of the lanes.
func (t *Transport) writeOutputs(sync bool, out []output, more func(*store.Batch)) (wait func(), err error) {
	return t.db.Apply(sync, func(b *store.Batch) error {
		ahead := make(map[*laneLog]uint64, 1)
		for i := range out {
			o := &out[i]
			if o.isStored() {
				o.offset = o.lane.head + ahead[o.lane]
				ahead[o.lane]++
				b.Append(o.lane.topic.name, o.lane.index, o.offset, o.record)
			}
		}
		more(b)
		return nil
	})
}

// pushOutputs makes out visible to the consumers after it was applied. The caller holds the locks of
// the lanes.
func (t *Transport) pushOutputs(out []output) {
	for _, o := range out {
		o.lane.appendRecord(o.record)
	}
	t.activity.Add(1)
}

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

// maxPendingCommits is how many commits of a lane wait for the disk before it handles further messages.
const maxPendingCommits = 128

// pendingCommit is a commit that is visible and not durable yet, or that follows such a commit.
type pendingCommit struct {
	key      string
	wait     func()   // nil if the handler did not ask for a durable commit
	onCommit []func() // the OnCommit functions
	// done is closed when the commit is durable and its functions have run.
	done chan struct{}
}

// runOnCommit runs the functions of a commit that is durable, or need not be.
func (l *pendingCommit) runOnCommit() {
	for _, f := range l.onCommit {
		f()
	}
}

// commitQueue are the commits of a group in a lane that wait for the disk, in order. The lane handles
// messages of other keys meanwhile, so that one write to the disk serves many of its commits.
type commitQueue struct {
	mu      sync.Mutex
	pending []*pendingCommit
	// lastByKey is the last one of each key.
	lastByKey map[string]*pendingCommit
}

// oldestDone returns a channel that is closed when the oldest commit is durable, or nil if none waits.
func (ls *commitQueue) oldestDone() <-chan struct{} {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(ls.pending) == 0 {
		return nil
	}
	return ls.pending[0].done
}

// admit returns nil if a message of key may be handled, and otherwise a channel that is closed when
// to ask again.
func (ls *commitQueue) admit(key string) <-chan struct{} {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.lastByKey[key]; l != nil {
		return l.done
	}
	if len(ls.pending) >= maxPendingCommits {
		return ls.pending[0].done
	}
	return nil
}

// add appends l, and calls onDone when it is done. The first one is waited for by a goroutine, which goes on to the
// ones behind it and ends with the last.
func (ls *commitQueue) add(l *pendingCommit, onDone func()) {
	l.done = make(chan struct{})
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.pending = append(ls.pending, l)
	if ls.lastByKey == nil {
		ls.lastByKey = make(map[string]*pendingCommit)
	}
	ls.lastByKey[l.key] = l
	if len(ls.pending) == 1 {
		go ls.awaitCommits(l, onDone)
	}
}

// awaitCommits waits for l and the ones behind it, and calls onDone after each.
func (ls *commitQueue) awaitCommits(l *pendingCommit, onDone func()) {
	for l != nil {
		if l.wait != nil {
			l.wait()
		}
		l.runOnCommit()
		onDone()
		l = ls.remove(l)
	}
}

// remove removes l, the oldest, and returns the next one.
func (ls *commitQueue) remove(l *pendingCommit) (next *pendingCommit) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.pending[0] = nil
	if ls.pending = ls.pending[1:]; len(ls.pending) > 0 {
		next = ls.pending[0]
	}
	if ls.lastByKey[l.key] == l {
		delete(ls.lastByKey, l.key)
	}
	close(l.done)
	return next
}

// awaitEmpty waits until no commit waits. Nothing is added meanwhile.
func (ls *commitQueue) awaitEmpty() {
	for wait := ls.oldestDone(); wait != nil; wait = ls.oldestDone() {
		<-wait
	}
}
