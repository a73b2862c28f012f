package local

import (
	"context"
	"errors"
	"slices"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/store"
)

// errRevoked says that a commit was abandoned because the subscription ends.
var errRevoked = errors.New("local: the subscription ends")

// Admit makes a message wait for the OnCommit functions of the previous one of its key.
func (c *cursor) Admit(w engine.Work) <-chan struct{} { return c.landings.admit(w.Key()) }

// Commit makes the effects of x visible, together with the position of its message. Its OnCommit
// functions run at once, or, where the handler asked for a durable commit, when it is durable; they
// follow those of all earlier commits.
func (c *cursor) Commit(_ context.Context, x *engine.Tx[output], stopping <-chan struct{}) (done, over bool) {
	t := c.c.t
	l := &landing{key: x.Work.Key()}
	var out []output
	err := x.Commit(func(e *engine.Effects[output]) (err error) {
		out, l.after = e.Out, e.OnCommit
		var from, to uint64
		if c.moves(x.Work) {
			from, to = c.lane.trimmable()
		}
		if l.wait, err = c.apply(x.Work, e, stopping, from, to); err == nil {
			c.lane.trimmed(to)
		}
		return err
	})
	switch {
	case errors.Is(err, errRevoked):
		return false, true
	case err != nil:
		c.failed("a commit failed", err)
		return false, false
	}
	c.land(x.Work, l)
	t.retain(out)
	return true, false
}

// land moves on behind a message whose commit was applied.
func (c *cursor) land(w engine.Work, l *landing) {
	t := c.c.t
	if l.wait != nil || !c.landings.none() {
		c.landings.add(l, func() { t.activity.Add(1) })
		c.advance(w)
		return
	}
	l.finish()
	c.advance(w)
	t.activity.Add(1)
}

// advance moves on behind a message of the log.
func (c *cursor) advance(w engine.Work) {
	if w.Kind == engine.FromLog {
		c.lane.advance(c, c.at.Offset+1, c.at.Record.Size(), c.c.t.cfg.Bound)
	}
}

// moves reports whether the commit of w stores the position of the group.
func (c *cursor) moves(w engine.Work) bool {
	return w.Kind == engine.FromLog && !c.lane.topic.volatile
}

// apply makes e visible, and trims the log of c between two offsets. If the handler asked for a
// durable commit and that takes time, it is durable when wait returns; otherwise wait is nil.
func (c *cursor) apply(w engine.Work, e *engine.Effects[output], stopping <-chan struct{}, from, to uint64) (wait func(), err error) {
	t, own := c.c.t, c.lane
	lanes := lanesOf(e.Out)
	room := func(l *laneLog) bool {
		return l.topic.declared.Feedback && !own.topic.declared.Entry || !l.full(t.cfg.Bound)
	}
	if err := t.lockWithRoom(lanes, room, stopping, nil); err != nil {
		return nil, err
	}
	defer unlock(lanes)
	wait, err = t.db.Apply(e.Sync, func(b *store.Batch) error {
		for w := range e.Writes.All() {
			setState(b, w.Place.Group, t.laneOf(w.Place.Key), w.Place.Key, w.Name, w.Value)
		}
		t.appendTo(b, e.Out)
		if !c.c.timed {
			for _, w := range e.Wakes {
				setState(b, c.c.wakeGroup(), own.index, w.Key, flow.WakeName, w.Value())
			}
		}
		if c.moves(w) {
			b.SetPosition(c.c.group, own.topic.name, own.index, c.at.Offset+1)
			if to > from {
				b.Trim(own.topic.name, own.index, from, to)
			}
		}
		if !b.Empty() {
			t.saveClock(b, false)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.push(e.Out)
	for _, w := range e.Wakes {
		c.wakes.Set(w)
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

// lanesOf returns the lanes of out in locking order.
func lanesOf(out []output) []*laneLog {
	var lanes []*laneLog
	for _, o := range out {
		if !slices.Contains(lanes, o.lane) {
			lanes = append(lanes, o.lane)
		}
	}
	slices.SortFunc(lanes, func(a, b *laneLog) int { return a.order - b.order })
	return lanes
}

// lockWithRoom waits until all lanes have room and locks them. It returns errRevoked if one of
// the channels is closed before.
func (t *Transport) lockWithRoom(lanes []*laneLog, room func(*laneLog) bool, cancel, stop <-chan struct{}) error {
	for {
		var wait <-chan struct{}
		for _, l := range lanes {
			l.mu.Lock()
			if wait == nil && !room(l) {
				wait = l.waitRoom()
			}
		}
		if wait == nil {
			return nil
		}
		unlock(lanes)
		select {
		case <-wait:
		case <-cancel:
			return errRevoked
		case <-stop:
			return errRevoked
		}
	}
}

func unlock(lanes []*laneLog) {
	for _, l := range lanes {
		l.mu.Unlock()
	}
}

// appendTo writes the logged messages of out to b, each at the next offset of its lane. The
// caller holds the locks of the lanes.
func (t *Transport) appendTo(b *store.Batch, out []output) {
	ahead := make(map[*laneLog]uint64, 1)
	for _, o := range out {
		if !o.logged() {
			continue
		}
		b.Append(o.lane.topic.name, o.lane.index, o.lane.head+ahead[o.lane], o.rec)
		ahead[o.lane]++
	}
}

// push makes out visible to the consumers after it was applied. The caller holds the locks of
// the lanes.
func (t *Transport) push(out []output) {
	for _, o := range out {
		o.lane.push(o.rec, o.size)
	}
	t.activity.Add(1)
}
