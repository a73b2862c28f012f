package local

import (
	"context"
	"errors"
	"slices"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/store"
)

// errRevoked says that a commit was abandoned because the subscription ends.
var errRevoked = errors.New("local: the subscription ends")

// Admit returns nil: the functions of OnCommit have run when Commit returns.
func (c *cursor) Admit(engine.Work) <-chan struct{} { return nil }

// Commit commits the effects of x together with the position of its message, and then runs its
// OnCommit functions.
func (c *cursor) Commit(_ context.Context, x *engine.Tx[output], stopping <-chan struct{}) (done, over bool) {
	var effects engine.Effects[output]
	var trimmed uint64
	err := x.Commit(func(e *engine.Effects[output]) (err error) {
		effects = *e
		trimmed, err = c.commit(x.Work, e, stopping)
		return err
	})
	switch {
	case errors.Is(err, errRevoked):
		return false, true
	case err != nil:
		c.failed("a commit failed", err)
		return false, false
	}
	for _, f := range effects.OnCommit {
		f()
	}
	t := c.c.t
	if x.Work.Kind == engine.FromLog {
		c.lane.advance(c, c.at.Offset+1, c.at.Record.Size(), t.cfg.Bound)
		c.lane.trimmed(trimmed)
	}
	t.activity.Add(1)
	t.retain(effects.Out)
	return true, false
}

// commit makes e visible, and durable if the handler asked for that. It returns up to where it
// trimmed the log, 0 if it did not.
func (c *cursor) commit(w engine.Work, e *engine.Effects[output], stopping <-chan struct{}) (trimmed uint64, err error) {
	from, to := c.lane.trimmable()
	b, wait, err := c.apply(w, e, stopping, from, to)
	if b != nil {
		defer b.Close()
	}
	if err == nil {
		err = wait()
	}
	return to, err
}

// apply makes e visible, and trims the log of c between two offsets. It is durable, if the handler
// asked for that, when wait returns.
func (c *cursor) apply(w engine.Work, e *engine.Effects[output], stopping <-chan struct{}, from, to uint64) (b *store.Batch, wait func() error, err error) {
	t, own := c.c.t, c.lane
	lanes := lanesOf(e.Out)
	room := func(l *laneLog) bool { return l.topic.feedback && !own.topic.entry || !l.full(t.cfg.Bound) }
	if err := t.lockWithRoom(lanes, room, stopping, nil); err != nil {
		return nil, nil, err
	}
	defer unlock(lanes)
	wait = func() error { return nil }
	moves := w.Kind == engine.FromLog && !own.topic.volatile
	if moves || len(e.Wakes) > 0 || !e.Writes.Empty() || slices.ContainsFunc(e.Out, output.logged) {
		if b, err = t.db.NewBatch(); err != nil {
			return nil, nil, err
		}
		t.writeState(b, e.Writes)
		t.appendTo(b, e.Out)
		for _, w := range e.Wakes {
			b.SetWake(c.c.group, own.topic.name, own.index, store.Wake(w))
		}
		t.saveClock(b)
		if moves {
			b.SetPosition(c.c.group, own.topic.name, own.index, c.at.Offset+1)
			if to > from {
				b.Trim(own.topic.name, own.index, from, to)
			}
		}
		if wait, err = b.Apply(e.Sync); err != nil {
			return b, nil, err
		}
	}
	t.push(e.Out)
	for _, w := range e.Wakes {
		c.setWake(w)
	}
	return b, wait, nil
}

// writeState writes changes of state to b.
func (t *Transport) writeState(b *store.Batch, writes *engine.Writes) {
	for p, names := range writes.All() {
		lane := t.laneOf(p.Key)
		for name, value := range names {
			if value == nil {
				b.DeleteState(p.Group, lane, p.Key, name)
			} else {
				b.SetState(p.Group, lane, p.Key, name, value)
			}
		}
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
