package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// SetBack is how far the clock must be set back for all wakes to fire once.
	SetBack = time.Minute
	// SaveEvery is how often a commit stores the current time.
	SaveEvery = 10 * time.Second
)

// Clock remembers the latest time of a wall clock, to notice when that is set back: wakes that
// were scheduled before would come too late. The zero Clock has seen no time. It is safe for
// concurrent use.
type Clock struct {
	high     atomic.Int64 // in Unix nanoseconds
	checking sync.Mutex
}

// See records the time now, and returns it.
func (c *Clock) See(now time.Time) time.Time {
	n := now.UnixNano()
	for {
		high := c.high.Load()
		if n <= high || c.high.CompareAndSwap(high, n) {
			return now
		}
	}
}

// Behind reports whether now is more than SetBack before the latest time.
func (c *Clock) Behind(now time.Time) bool {
	return c.high.Load()-now.UnixNano() > int64(SetBack)
}

// Check calls wake with the latest time if now is Behind, and then makes now the latest time. It
// does nothing while another call of Check calls wake.
func (c *Clock) Check(now time.Time, wake func(from time.Time)) {
	if !c.Behind(now) || !c.checking.TryLock() {
		return
	}
	defer c.checking.Unlock()
	high := c.high.Load()
	if !c.Behind(now) {
		return
	}
	wake(time.Unix(0, high))
	c.high.CompareAndSwap(high, now.UnixNano()) // after wake: until then no commit may store now
}
