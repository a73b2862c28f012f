package engine

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// SetBack is how far the clock must be set back for all wakes to fire once.
	SetBack = time.Minute
	// saveInterval is how often a commit stores the current time.
	saveInterval = 10 * time.Second
)

// Clock is the clock of a transport. It remembers the latest time, to notice when the wall clock is
// set back: wakes that were scheduled before would come too late. It has seen no time at first. It is
// safe for concurrent use.
type Clock struct {
	// Wall returns the time of the wall clock.
	Wall func() time.Time
	// WakeAll makes every wake be delivered once regardless of the time.
	WakeAll func()
	Log     *slog.Logger

	latest  atomic.Int64 // in Unix nanoseconds
	checkMu sync.Mutex
}

// Now returns the time of the wall clock and remembers it.
func (c *Clock) Now() time.Time {
	now := c.Wall()
	c.See(now)
	return now
}

// CheckedNow is Now, but first it looks whether the clock was set back.
func (c *Clock) CheckedNow() time.Time {
	c.Check()
	return c.Now()
}

// See remembers the time now.
func (c *Clock) See(now time.Time) {
	n := now.UnixNano()
	for {
		high := c.latest.Load()
		if n <= high || c.latest.CompareAndSwap(high, n) {
			return
		}
	}
}

// Behind reports whether now is more than SetBack before the latest time.
func (c *Clock) Behind(now time.Time) bool {
	return c.latest.Load()-now.UnixNano() > int64(SetBack)
}

// Save reports whether a commit has to store the time now, which is done at intervals and with the last
// commit. Saved is the stored time. While wakes come regardless of the time, which waking reports, only a later
// time is stored, so that a restart still notices that the clock was set back.
func (c *Clock) Save(saved time.Time, last bool, waking func() bool) (now time.Time, ok bool) {
	now = c.Now()
	d := now.Sub(saved)
	return now, (last || d.Abs() >= saveInterval) && !c.Behind(now) && (d >= 0 || !waking())
}

// Check calls WakeAll if the wall clock was set back, and then makes its time the latest one. It
// does nothing while another call of Check calls WakeAll.
func (c *Clock) Check() {
	now := c.Wall()
	if !c.Behind(now) || !c.checkMu.TryLock() {
		return
	}
	defer c.checkMu.Unlock()
	high := c.latest.Load()
	if !c.Behind(now) {
		return
	}
	c.Log.Warn("the clock was set back: all that was scheduled is looked at once", "from", time.Unix(0, high).UTC(), "to", now.UTC())
	c.WakeAll()
	c.latest.CompareAndSwap(high, now.UnixNano()) // after WakeAll: until then no commit may store now
}
