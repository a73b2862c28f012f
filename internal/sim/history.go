package sim

import (
	"encoding/json"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// entry is one message or wake that index handled, and what it asked for and told.
type entry struct {
	step      int
	now       time.Time
	message   pipeline.Message
	requests  []pipeline.Request
	snapshots []pipeline.Snapshot
	ended     []pipeline.Ended
	withdrawn []pipeline.Withdraw
	health    []pipeline.Health
}

// undo has f called if the commit that was just made is lost in a power cut.
func (w *world) undo(f func()) {
	if len(w.t.undo) > 0 {
		w.t.undone(f)
	}
}

// record remembers what was committed.
func (w *world) record(h handleable, out []pipeline.Message) error {
	switch h.c.group {
	case pipeline.GroupIndex:
		return w.recordIndex(h, out)
	case pipeline.GroupMatch:
		return w.recordMatch(out)
	case pipeline.GroupDelivery:
		return w.recordDelivery(h, out)
	}
	return nil
}

// recordIndex remembers what index did.
func (w *world) recordIndex(h handleable, out []pipeline.Message) error {
	e := entry{step: w.steps, now: w.now, message: h.message}
	for _, m := range out {
		var err error
		switch m.Type {
		case pipeline.TypeRequest:
			err = collect(m, &e.requests)
		case pipeline.TypeEnded:
			err = collect(m, &e.ended)
		case pipeline.TypeWithdraw:
			err = collect(m, &e.withdrawn)
		case pipeline.TypeHealth:
			err = collect(m, &e.health)
		case pipeline.TypeSnapshot:
			var s pipeline.Snapshot
			s, err = pipeline.SnapshotFrom(m)
			e.snapshots = append(e.snapshots, s)
		}
		if err != nil {
			return err
		}
	}
	page := h.message.Key
	w.history[page] = append(w.history[page], e)
	w.undo(func() { w.history[page] = w.history[page][:len(w.history[page])-1] })
	return nil
}

// collect adds the body of m to all.
func collect[T any](m pipeline.Message, all *[]T) error {
	var v T
	err := json.Unmarshal(m.Body, &v)
	*all = append(*all, v)
	return err
}

// recordMatch remembers which subscription each notification is for.
func (w *world) recordMatch(out []pipeline.Message) error {
	for _, m := range out {
		var a pipeline.Addressed
		if err := json.Unmarshal(m.Body, &a); err != nil {
			return err
		}
		w.subscriptionOf[m.ID] = a.Subscription
	}
	return nil
}

// crash ends the process and starts it again: what was in memory is lost, and in a
// power cut what was not durable too.
func (w *world) crash(why string) {
	w.stats.Crashes++
	w.crashes = append(w.crashes, w.steps)
	cut := w.rng.IntN(3) == 0 || w.cfg.Stormy
	w.tracef("CRASH %s, power cut: %v", why, cut)
	if cut {
		w.stats.PowerCuts++
		w.t.rollback()
	}
	w.t.sync()
	w.receivers.crashed()
	w.checks, w.attempts, w.inbox = nil, nil, nil
	for id, wk := range w.t.wakes {
		if wk.atStart && wk.at.After(w.now) {
			w.t.wakes[id] = wake{start.Add(-24 * time.Hour), true} // at once, whatever the clock does
		}
	}
	w.wakeAll()
	w.build()
}

// steppedBack is how far a clock must be set back for everything to be woken.
const steppedBack = time.Minute

// wakeAll wakes everything if the clock stands far behind what it once showed, as a
// transport does that sees that: what waits may wait for a time that is past.
func (w *world) wakeAll() {
	if !w.now.Before(w.latest.Add(-steppedBack)) {
		return
	}
	for id, wk := range w.t.wakes {
		if wk.at.After(w.now) {
			w.t.wakes[id] = wake{w.now, wk.atStart}
		}
	}
	w.latest = w.now
}

// publish puts messages into their topics from outside; they are durable.
func (w *world) publish(ms ...pipeline.Message) {
	for _, m := range ms {
		w.t.append(m)
	}
	w.t.sync()
}
