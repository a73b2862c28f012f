package kafka

import "time"

// now is the time by the wall clock. That there was such a time is remembered, so that it is
// noticed when the clock is set back: what was scheduled before would then wait for times
// that are far ahead.
func (t *Transport) now() time.Time {
	now := t.cfg.Now()
	n := now.UnixNano()
	for {
		high := t.clockHigh.Load()
		if n <= high || t.clockHigh.CompareAndSwap(high, n) {
			return now
		}
	}
}

// behind reports whether now is so far behind the latest time that the clock was set back.
func (t *Transport) behind(now time.Time) bool {
	return t.clockHigh.Load()-now.UnixNano() > int64(setBack)
}

// checkClock wakes every key that has a wake once if the clock was set back.
func (t *Transport) checkClock() {
	now, high := t.cfg.Now(), t.clockHigh.Load()
	if !t.behind(now) || !t.clockHigh.CompareAndSwap(high, now.UnixNano()) {
		return
	}
	t.log.Warn("the clock was set back: all that was scheduled is looked at once", "from", time.Unix(0, high).UTC(), "to", now.UTC())
	for lane := range t.owned {
		if n := t.tenure(lane); n != nil {
			n.wakeAll()
		}
	}
}

// wakeAll makes every wake of n come once.
func (n *tenure) wakeAll() {
	n.queueMu.Lock()
	for _, q := range n.queues {
		q.wakeAll()
	}
	n.queueMu.Unlock()
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for _, r := range n.runners {
		notify(r.signal)
	}
}
