package kafka

import (
	"time"

	"github.com/vokter/vokter/internal/engine"
)

// now returns the wall-clock time and records that it was seen.
func (t *Transport) now() time.Time { return t.clock.See(t.cfg.Now()) }

// checkedNow is now, but first it looks whether the clock was set back.
func (t *Transport) checkedNow() time.Time {
	t.checkClock()
	return t.now()
}

// checkClock makes every wake come once if the clock was set back.
func (t *Transport) checkClock() {
	now := t.cfg.Now()
	t.clock.Check(now, func(from time.Time) {
		t.log.Warn("the clock was set back: all that was scheduled is looked at once", "from", from.UTC(), "to", now.UTC())
		for lane := range t.owned {
			if n := t.lease(lane); n != nil {
				n.wakeAll()
			}
		}
	})
}

// wakeAll makes every wake of n come once regardless of the time.
func (n *lease) wakeAll() {
	n.queueMu.Lock()
	for _, q := range n.queues {
		q.WakeAll()
	}
	n.queueMu.Unlock()
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for _, seat := range n.seats {
		if seat.Runner != nil {
			engine.Notify(seat.Runner.Signal)
		}
	}
}
