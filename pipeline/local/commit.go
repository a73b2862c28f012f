package local

import (
	"context"
	"errors"
	"slices"

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
