package local

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/store"
)

// clock remembers the latest time, and the one in the store.
type clock struct {
	mill.Clock
	saved atomic.Int64 // in Unix nanoseconds
}

// now returns the time of the wall clock, and records it in t.clock.
func (t *Transport) now() time.Time { return t.clock.See(t.cfg.Now()) }

// restoreClock reads when the store was last used.
func (t *Transport) restoreClock() error {
	if t.volatile {
		return nil
	}
	at, ok, err := t.db.LastSeen()
	if err != nil || !ok {
		return err
	}
	t.clock.See(at)
	t.clock.saved.Store(at.UnixNano())
	return nil
}

// checkClock delivers every wake once if the clock was set back.
func (t *Transport) checkClock() {
	now := t.cfg.Now()
	t.clock.Check(now, func(from time.Time) {
		t.log.Warn("the clock was set back: all that was scheduled is looked at once", "from", from.UTC(), "to", now.UTC())
		for _, tp := range t.allTopics() {
			for _, c := range tp.consumers() {
				for _, cur := range c.cursors {
					cur.wakes.WakeAll()
					cur.notify()
				}
			}
		}
	})
}

// saveClock writes the current time to b, unless the store has a recent one.
func (t *Transport) saveClock(b *store.Batch) {
	if t.volatile {
		return
	}
	now := t.now()
	d := now.Sub(time.Unix(0, t.clock.saved.Load())).Abs()
	if d < mill.SaveEvery || t.clock.Behind(now) || t.waking() {
		return
	}
	b.SetLastSeen(now)
	t.clock.saved.Store(now.UnixNano())
}

// keepClock stores the current time when the Transport closes.
func (t *Transport) keepClock() error {
	if t.volatile {
		return nil
	}
	b, err := t.db.NewBatch(false)
	if errors.Is(err, store.ErrClosed) {
		return nil // the owner of the store closed it first
	}
	if err != nil {
		return err
	}
	defer b.Close()
	t.clock.saved.Store(0)
	if t.saveClock(b); b.Empty() {
		return nil
	}
	return b.Commit(false)
}

// waking reports whether wakes are, or may be, delivered whatever the time is, because the
// clock was set back. Until they are delivered the store keeps that fact, so that a crash does
// not delay them.
func (t *Transport) waking() bool {
	for _, tp := range t.allTopics() {
		consumers, ok := tp.tryConsumers()
		if !ok {
			return true
		}
		for _, c := range consumers {
			for _, cur := range c.cursors {
				if cur.wakes.Waking() {
					return true
				}
			}
		}
	}
	return false
}

// maxSleep limits the timer, to notice a clock that was set or a machine that was suspended.
const maxSleep = time.Second

// alarm is the timer of a Transport for all wakes.
type alarm struct {
	mu    sync.Mutex
	timer *time.Timer
	at    atomic.Int64
}

// arm sets the timer so that ring runs no later than at.
func (t *Transport) arm(at int64) {
	a := &t.alarm
	if at >= a.at.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.closed() || at >= a.at.Load() {
		return
	}
	a.at.Store(at)
	d := min(max(time.Duration(at-t.now().UnixNano()), 0), maxSleep)
	if a.timer == nil {
		a.timer = time.AfterFunc(d, t.ring)
		return
	}
	a.timer.Reset(d)
}

// ring notifies the lanes whose wakes are due, and sets the timer for the next wake.
func (t *Transport) ring() {
	t.alarm.mu.Lock()
	t.alarm.at.Store(never)
	t.alarm.mu.Unlock()
	t.checkClock()
	now, next := t.now(), never
	for _, tp := range t.allTopics() {
		for _, c := range tp.consumers() {
			for _, cur := range c.cursors {
				_, due, until := cur.wakes.Next(now)
				switch {
				case due:
					cur.notify()
				case !until.IsZero():
					next = min(next, store.Nanoseconds(until))
				}
			}
		}
	}
	if next != never {
		t.arm(next)
	}
}

func (t *Transport) stopAlarm() {
	t.alarm.mu.Lock()
	defer t.alarm.mu.Unlock()
	if t.alarm.timer != nil {
		t.alarm.timer.Stop()
	}
}

// begin makes the wakes that are also delivered at start be delivered. It runs when the group's
// first subscription starts to serve the lane.
func (c *cursor) begin() {
	if c.started || c.c.asleep {
		return
	}
	c.started = true
	c.lane.mu.Lock()
	c.backlog = c.lane.head
	c.lane.mu.Unlock()
	c.wakes.Start()
}

// late reports whether messages that were in the log at start are still unhandled. Wakes wait
// for them, because the result of work that seems lost may be among them.
func (c *cursor) late() bool {
	c.lane.mu.Lock()
	defer c.lane.mu.Unlock()
	return c.next < c.backlog
}

// takeWake returns a wake that is due, or one that is delivered regardless of the time.
func (c *cursor) takeWake() (work, bool) {
	if c.c.asleep || c.late() {
		return work{}, false
	}
	w, ok, until := c.wakes.Next(c.c.t.cfg.Now())
	if ok {
		return work{kind: fromWake, wake: w, message: flow.WakeMessage(c.c.group, c.c.topic.name, w.Key, w.At)}, true
	}
	if !until.IsZero() {
		c.c.t.arm(store.Nanoseconds(until)) // the clock may have been set back since the timer fired
	}
	return work{}, false
}

// setWake records w, which is stored, and sets the timer.
func (c *cursor) setWake(w mill.Wake) {
	if !w.At.IsZero() {
		at := store.Nanoseconds(w.At)
		w.At = time.Unix(0, at).UTC() // as it is read back from the store
		defer c.c.t.arm(at)
	}
	c.wakes.Set(w)
}

// restore reads the wakes of a cursor from the store.
func (c *cursor) restore() error {
	for w, err := range c.c.t.db.Wakes(c.c.group, c.lane.topic.name, c.lane.index) {
		if err != nil {
			return err
		}
		c.setWake(mill.Wake(w))
	}
	return nil
}
