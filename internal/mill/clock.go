package mill

import (
	"sync"
	"sync/atomic"
	"time"
)

// How clocks that are set are dealt with.
const (
	// SetBack is how far the clock must go back for all wakes to come once.
	SetBack = time.Minute
	// SaveEvery is how often a commit stores what time it is.
	SaveEvery = 10 * time.Second
)

// Clock remembers the latest time of a wall clock, so that it is noticed when that is set back:
// what was scheduled before would then wait for times that are far ahead. The zero Clock has
// seen none. It is safe for concurrent use.
type Clock struct {
	high     atomic.Int64 // in Unix nanoseconds
	checking sync.Mutex
}

// See remembers that there was the time now, and returns it.
func (c *Clock) See(now time.Time) time.Time {
	n := now.UnixNano()
	for {
		high := c.high.Load()
		if n <= high || c.high.CompareAndSwap(high, n) {
			return now
		}
	}
}

// Behind reports whether now is so far behind the latest time that the clock was set back.
func (c *Clock) Behind(now time.Time) bool {
	return c.high.Load()-now.UnixNano() > int64(SetBack)
}

// Check calls wake with the latest time if now is so far behind it that the clock was set back.
// Then now is the latest time. It does nothing while another call of wake goes on.
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
	c.high.CompareAndSwap(high, now.UnixNano()) // only now: a commit meanwhile must not store it
}
