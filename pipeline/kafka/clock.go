package kafka

import "github.com/vokter/vokter/internal/engine"

// wakeAll makes every wake come once regardless of the time.
func (t *Transport) wakeAll() {
	for lane := range t.owned {
		if n := t.lease(lane); n != nil {
			n.wakeAll()
		}
	}
}

// wakeAll makes every wake of n come once regardless of the time.
func (n *lease) wakeAll() {
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for _, c := range n.allCursors() {
		c.wakes.WakeAll()
		if r := c.seat.Runner; r != nil {
			engine.Notify(r.Signal)
		}
	}
}
