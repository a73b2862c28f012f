package local

import (
	"errors"
	"slices"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
)

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
	t.savedClock.Store(at.UnixNano())
	return nil
}

// wakeAll delivers every wake once.
func (t *Transport) wakeAll() {
	for _, cur := range t.allCursors() {
		for _, wakes := range cur.allWakes() {
			wakes.WakeAll()
		}
		cur.notify()
	}
}

// saveClock writes the current time to b if the store needs it.
func (t *Transport) saveClock(b *store.Batch, last bool) {
	if t.volatile {
		return
	}
	if now, ok := t.clock.Save(time.Unix(0, t.savedClock.Load()), last, t.hasForcedWakes); ok {
		b.SetLastSeen(now)
		t.savedClock.Store(now.UnixNano())
	}
}

// storeClock stores the current time when the Transport closes. That makes all commits durable, also in a
// store whose owner does not close it.
func (t *Transport) storeClock() error {
	err := t.db.Write(true, func(b *store.Batch) error {
		t.saveClock(b, true)
		return nil
	})
	if errors.Is(err, store.ErrClosed) {
		return nil // the owner of the store closed it first
	}
	return err
}

// hasForcedWakes reports whether wakes are delivered whatever the time is, because the clock was set back.
// Until they are delivered the store keeps that fact, so that a crash does not delay them.
func (t *Transport) hasForcedWakes() bool {
	return slices.ContainsFunc(t.allCursors(), func(c *cursor) bool {
		return slices.ContainsFunc(c.allWakes(), (*engine.Wakes).Waking)
	})
}
