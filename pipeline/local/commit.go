package local

import (
	"slices"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/store"
)

// commit commits the effects of x together with the position of its message. It returns
// errRevoked if revoked is closed while it waits for room.
func (t *Transport) commit(x *tx, revoked <-chan struct{}) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	wait, err := t.applyTx(x, revoked)
	if err != nil {
		return err
	}
	if err := wait(); err != nil {
		return err
	}
	x.over = true
	return nil
}

// applyTx makes the effects of x visible. When wait returns nil they are durable, if x asked
// for that.
func (t *Transport) applyTx(x *tx, revoked <-chan struct{}) (wait func() error, err error) {
	c := x.cur.c
	if len(x.wakes) > 0 || x.w.kind == fromWake {
		c.wakes.Lock()
		defer c.wakes.Unlock()
	}
	x.takeWake()
	x.trimFrom, x.trimTo = x.cur.lane.trimmable()
	lanes := lanesOf(x.out)
	room := func(l *lane) bool {
		return l.topic.feedback && !x.cur.lane.topic.entry || !l.full(t.cfg.Bound)
	}
	if err := t.lockWithRoom(lanes, room, revoked, nil); err != nil {
		return nil, err
	}
	defer unlock(lanes)
	b := x.batch
	if b == nil && (len(x.wakes) > 0 || x.logged()) {
		if b, err = t.db.NewBatch(false); err != nil {
			return nil, err
		}
		x.batch = b
	}
	wait = func() error { return nil }
	if b != nil {
		t.appendTo(b, x.out)
		for _, w := range x.wakes {
			b.SetWake(c.group, c.topic.name, w.cur.lane.index, store.Wake(w.Wake))
		}
		t.saveClock(b)
		t.position(b, x)
		if wait, err = b.Apply(x.sync); err != nil {
			return nil, err
		}
	}
	t.push(x.out)
	for _, w := range x.wakes {
		w.cur.setWake(w.Wake)
	}
	return wait, nil
}

// takeWake removes the wake that was delivered, unless x sets it again or it was set meanwhile.
func (x *tx) takeWake() {
	w := x.w.wake
	if x.w.kind != fromWake || !x.cur.wakes.Get(w.Key).At.Equal(w.At) ||
		slices.ContainsFunc(x.wakes, func(c wakeChange) bool { return c.Key == w.Key }) {
		return
	}
	x.wakes = append(x.wakes, wakeChange{Wake: mill.Wake{Key: w.Key}, cur: x.cur})
}

// moves reports whether the commit of x stores a position.
func (x *tx) moves() bool { return x.w.kind == fromLog && !x.cur.lane.topic.volatile }

// logged reports whether the commit of x stores a position or messages.
func (x *tx) logged() bool { return x.moves() || slices.ContainsFunc(x.out, output.logged) }

// position writes the position after x's message to b, and trims the log if that is due.
func (t *Transport) position(b *store.Batch, x *tx) {
	if !x.moves() {
		return
	}
	c, l := x.cur.c, x.cur.lane
	b.SetPosition(c.group, c.topic.name, l.index, x.w.entry.Offset+1)
	if x.trimTo > x.trimFrom {
		b.Trim(c.topic.name, l.index, x.trimFrom, x.trimTo)
	}
}

// handled runs x's OnCommit functions and moves on from its message, after the commit.
func (t *Transport) handled(x *tx) {
	for _, f := range x.onCommit {
		f()
	}
	cur := x.cur
	switch x.w.kind {
	case fromLog:
		cur.lane.advance(cur, x.w.entry.Offset+1, x.w.entry.Record.Size(), t.cfg.Bound)
		cur.lane.trimmed(x.trimTo)
	case fromPost:
		cur.held = nil
		cur.posted.Add(-1)
	}
	t.activity.Add(1)
	t.retain(x.out)
}

// lanesOf returns the lanes of out in locking order.
func lanesOf(out []output) []*lane {
	var lanes []*lane
	for _, o := range out {
		if !slices.Contains(lanes, o.lane) {
			lanes = append(lanes, o.lane)
		}
	}
	slices.SortFunc(lanes, func(a, b *lane) int { return a.order - b.order })
	return lanes
}

// lockWithRoom waits until all lanes have room and locks them. It returns errRevoked if one of
// the channels is closed before.
func (t *Transport) lockWithRoom(lanes []*lane, room func(*lane) bool, cancel, stop <-chan struct{}) error {
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

func unlock(lanes []*lane) {
	for _, l := range lanes {
		l.mu.Unlock()
	}
}

// appendTo writes the logged messages of out to b, each at the next offset of its lane. The
// caller holds the locks of the lanes.
func (t *Transport) appendTo(b *store.Batch, out []output) {
	ahead := make(map[*lane]uint64, 1)
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
