package kafka

import "time"

// now is the time by the wall clock. That there was such a time is remembered.
func (t *Transport) now() time.Time { return t.clock.See(t.cfg.Now()) }

// checkClock wakes every key that has a wake once if the clock was set back.
func (t *Transport) checkClock() {
	now := t.cfg.Now()
	t.clock.Check(now, func(from time.Time) {
		t.log.Warn("the clock was set back: all that was scheduled is looked at once", "from", from.UTC(), "to", now.UTC())
		for lane := range t.owned {
			if n := t.tenure(lane); n != nil {
				n.wakeAll()
			}
		}
	})
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
