package local

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline/store"
)

// How clocks that are set are dealt with.
const (
	// setBack is how far the clock must go back for all wakes to come once.
	setBack = time.Minute
	// saveEvery is how often a commit stores what time it is.
	saveEvery = 10 * time.Second
)

// clock remembers the latest time, so that it is noticed when the clock is set back: what
// was scheduled before would then wait for times that are far ahead.
type clock struct {
	// high is the latest time seen, saved the one in the store, in Unix nanoseconds.
	high, saved atomic.Int64
}

// now is the time by the wall clock. That there was such a time is remembered.
func (t *Transport) now() time.Time {
	now := t.cfg.Now()
	n := now.UnixNano()
	for {
		high := t.clock.high.Load()
		if n <= high || t.clock.high.CompareAndSwap(high, n) {
			return now
		}
	}
}

// restoreClock reads when the store was last used.
func (t *Transport) restoreClock() error {
	if t.volatile {
		return nil
	}
	at, ok, err := t.db.LastSeen()
	if err != nil || !ok {
		return err
	}
	t.clock.high.Store(at.UnixNano())
	t.clock.saved.Store(at.UnixNano())
	return nil
}

// behind reports whether now is so far behind the latest time that the clock was set back.
func (t *Transport) behind(now time.Time) bool {
	return t.clock.high.Load()-now.UnixNano() > int64(setBack)
}

// checkClock wakes every key that has a wake once if the clock was set back.
func (t *Transport) checkClock() {
	now := t.cfg.Now()
	if !t.behind(now) {
		return
	}
	high := time.Unix(0, t.clock.high.Load())
	t.log.Warn("the clock was set back: all that was scheduled is looked at once", "from", high.UTC(), "to", now.UTC())
	for _, tp := range t.allTopics() {
		for _, c := range tp.consumers() {
			for _, cur := range c.cursors {
				cur.wakeAll()
			}
		}
	}
	t.clock.high.Store(now.UnixNano())
}

// saveClock puts into b what time it is, if that is not in the store.
func (t *Transport) saveClock(b *store.Batch) {
	if t.volatile {
		return
	}
	now := t.now()
	d := now.Sub(time.Unix(0, t.clock.saved.Load())).Abs()
	if d < saveEvery || t.behind(now) || t.waking() {
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
