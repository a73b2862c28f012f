package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// run takes the steps in which everything may go wrong, then lets things calm down until
// nothing is left to do.
func (w *world) run() error {
	for w.steps = 0; w.steps < w.cfg.Steps; w.steps++ {
		if err := w.step(); err != nil {
			return err
		}
	}
	return w.settle()
}

// step lets one thing happen.
func (w *world) step() error {
	switch n := w.rng.IntN(1000); {
	case n < 4:
		w.crash("between two steps")
		return nil
	case n < 50:
		s := pick(w.rng, w.sites)
		s.edit(w.rng)
		w.tracef("%s is edited", s.url)
		return nil
	case n < 90:
		w.command()
		return nil
	case n < 96:
		w.receivers.down = !w.receivers.down
		w.tracef("receiver down: %v", w.receivers.down)
		return nil
	case n < 115 && len(w.late) > 0:
		i := w.rng.IntN(len(w.late))
		w.tracef("late outcome of %s", w.late[i].Key)
		w.stats.Duplicates++
		w.publish(w.late[i])
		w.late = slices.Delete(w.late, i, i+1)
		return nil
	case n < 119:
		w.advance(time.Duration(w.rng.IntN(int(2 * time.Hour)))) // it was suspended, or its clock was set
		return nil
	case n < 121:
		w.advance(-time.Duration(w.rng.IntN(int(time.Minute))))
		return nil
	case n < 190:
		w.advance(time.Duration(w.rng.IntN(int(20 * time.Second))))
		return nil
	case n < 270 && len(w.checks) > 0:
		return w.stepCheck()
	case n < 350 && len(w.attempts) > 0:
		w.stepAttempt()
		return nil
	}
	return w.work()
}

// work lets a stage handle something, or a pool get on, or time pass until one can.
func (w *world) work() error {
	hs := w.ready()
	n := len(hs) + len(w.checks) + len(w.attempts)
	if n == 0 {
		w.sleep(func(wakeID) bool { return true })
		return nil
	}
	switch i := w.rng.IntN(n); {
	case i < len(hs) && hs[i].c == w.slow && !w.calm && w.rng.IntN(8) > 0:
		return nil
	case i < len(hs):
		return w.handle(hs[i])
	case i < len(hs)+len(w.checks):
		return w.stepCheck()
	}
	w.stepAttempt()
	return nil
}

// sleep advances the clock to the first wake of those that count.
func (w *world) sleep(counts func(wakeID) bool) bool {
	var first time.Time
	for _, id := range w.wakes() {
		if at := w.t.wakes[id].at; counts(id) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		return false
	}
	w.advance(max(first.Sub(w.now), 0))
	return true
}

func (w *world) advance(d time.Duration) { w.now = w.now.Add(d) }

// checksWhenCalm is how many more times every page is looked at, so that each document
// has the page's last text in the end, also where it must be seen several times.
const checksWhenCalm = 4

// maxWaits is after how many attempts in a row that only wait nothing is expected any more.
const maxWaits = 1000

// settle lets the stages finish. Pages are looked at a few times more, receivers are
// all well, and what is pending is delivered.
func (w *world) settle() error {
	w.calm = true
	w.tracef("now all is calm")
	for limit := w.steps + 20000; w.steps < limit; w.steps++ {
		if len(w.ready())+len(w.checks)+len(w.attempts) > 0 {
			if w.waited > maxWaits {
				return fmt.Errorf("stuck: %s", w.pending())
			}
			if err := w.work(); err != nil {
				return err
			}
			continue
		}
		unseen := func(id wakeID) bool {
			s := w.site(id.key)
			return id.group == pipeline.GroupIndex && s != nil && s.calm < checksWhenCalm
		}
		if w.sleep(unseen) {
			continue
		}
		due, parked := w.delivery.Backlog(0)
		if due+parked == 0 {
			return nil
		}
		if !w.sleep(func(id wakeID) bool { return id.group == pipeline.GroupDelivery }) {
			return fmt.Errorf("%d notifications are pending and nothing will wake delivery", due+parked)
		}
	}
	return fmt.Errorf("never done: %s", w.pending())
}

func (w *world) pending() string {
	s := ""
	for _, h := range w.ready() {
		s += fmt.Sprintf(" %v:%s of %s", h.c, h.message.Type, h.message.Key)
	}
	return fmt.Sprintf("%s; %d checks, %d attempts", s, len(w.checks), len(w.attempts))
}
