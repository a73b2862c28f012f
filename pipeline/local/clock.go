package local

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/store"
)

// clock remembers the latest time, and the one in the store.
type clock struct {
	mill.Clock
	saved atomic.Int64 // in Unix nanoseconds
}

// now is the time by the wall clock. That there was such a time is remembered.
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

// checkClock wakes every key that has a wake once if the clock was set back.
func (t *Transport) checkClock() {
	now := t.cfg.Now()
	t.clock.Check(now, func(from time.Time) {
		t.log.Warn("the clock was set back: all that was scheduled is looked at once", "from", from.UTC(), "to", now.UTC())
		for _, tp := range t.allTopics() {
			for _, c := range tp.consumers() {
				for _, cur := range c.cursors {
					cur.wakeAll()
				}
			}
		}
	})
}

// saveClock puts into b what time it is, if that is not in the store.
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

// keepClock stores what time it is when the Transport closes.
func (t *Transport) keepClock() error {
	if t.volatile {
		return nil
	}
	b, err := t.db.NewBatch(false)
	if errors.Is(err, store.ErrClosed) {
		return nil // who gave the store closed it first
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

// waking reports whether wakes are to come whatever the time is, or may be. Until they
// came the store says that the clock was set back: after a crash they would wait otherwise.
func (t *Transport) waking() bool {
	for _, tp := range t.allTopics() {
		consumers, ok := tp.tryConsumers()
		if !ok {
			return true
		}
		for _, c := range consumers {
			for _, cur := range c.cursors {
				if !cur.wakeMu.TryLock() {
					return true
				}
				waking := cur.waking()
				cur.wakeMu.Unlock()
				if waking {
					return true
				}
			}
		}
	}
	return false
}
