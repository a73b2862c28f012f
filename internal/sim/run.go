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
	case n < 104:
		w.turn()
		return nil
	case n < 121 && len(w.late) > 0:
		i := w.rng.IntN(len(w.late))
		w.tracef("late outcome of %s", w.late[i].Key)
		w.stats.Duplicates++
		w.publish(w.late[i])
		w.late = slices.Delete(w.late, i, i+1)
		return nil
	case n < 126:
		w.jump()
		return nil
	case n < 128:
		w.replay(pick(w.rng, sinkNames), pick(w.rng, []pipeline.DeadFilter{{}, {Client: pick(w.rng, clients)}, {URL: pick(w.rng, w.sites).url}}))
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
		// Not until things may be forgotten: for that the clock jumps.
		w.sleep(func(id wakeID) bool { return id.group == pipeline.GroupIndex || w.t.wakes[id].atStart })
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

func (w *world) advance(d time.Duration) {
	if w.now = w.now.Add(d); w.now.After(w.latest) {
		w.latest = w.now
	}
	w.wakeAll()
}

// turn makes something outside go wrong, or well again.
func (w *world) turn() {
	r, s := w.receivers, pick(w.rng, w.sites)
	switch w.rng.IntN(10) {
	case 0, 1:
		r.down = !r.down
		w.tracef("receiver down: %v", r.down)
	case 2, 3:
		r.left = !r.left
		w.tracef("receiver gone: %v", r.left)
	case 4:
		w.offline = !w.offline
		w.tracef("offline: %v", w.offline)
	default:
		s.broken, s.busy = !s.broken, w.rng.IntN(3) == 0
		w.tracef("%s broken: %v, busy: %v", s.url, s.broken, s.busy)
	}
}

// latestJump is how far from the start a clock is set forth at most: dead letters are kept
// for 90 days.
const latestJump = 50 * 24 * time.Hour

// jump lets the process be suspended, or sets its clock.
func (w *world) jump() {
	w.stats.Jumps++
	var d time.Duration
	switch w.rng.IntN(6) {
	case 0, 1:
		d = time.Duration(w.rng.IntN(int(2 * time.Hour)))
	case 2:
		d = -time.Duration(w.rng.IntN(int(time.Minute)))
	case 3, 4:
		d = -time.Duration(w.rng.IntN(int(2 * time.Hour)))
	default:
		if d = 10 * 24 * time.Hour; w.now.Add(d).After(start.Add(latestJump)) {
			return
		}
	}
	w.advance(d)
	w.tracef("the clock jumped by %v", d)
}

// checksWhenCalm is how many more times every page is looked at, so that each document
// has the page's last text in the end, also where it must be seen several times.
const checksWhenCalm = 4

// maxWaits is after how many attempts in a row that only wait nothing is expected any more.
const maxWaits = 1000

// replayRounds is how often dead letters are brought back in the end.
const replayRounds = 3

// settle lets the stages finish. Pages are looked at a few times more, receivers are
// all well, and what is pending is delivered, and what was given up too.
func (w *world) settle() error {
	w.calm = true
	w.tracef("now all is calm")
	rounds := 0
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
			if rounds++; rounds > replayRounds || !w.replayAll() {
				return nil
			}
			continue
		}
		if !w.sleep(func(id wakeID) bool { return id.group == pipeline.GroupDelivery }) {
			return fmt.Errorf("%d notifications are pending and nothing will wake delivery", due+parked)
		}
	}
	return fmt.Errorf("never done: %s", w.pending())
}

// replayAll brings back what is dead of receivers that are well, if anything is.
func (w *world) replayAll() bool {
	any := false
	for _, sink := range sinkNames {
		for id := range w.letters(sink) {
			if sink != picky || refuses(id) == nil {
				any = true
				w.replay(sink, pipeline.DeadFilter{})
				break
			}
		}
	}
	return any
}

func (w *world) pending() string {
	s := ""
	for _, h := range w.ready() {
		s += fmt.Sprintf(" %v:%s of %s", h.c, h.message.Type, h.message.Key)
	}
	return fmt.Sprintf("%s; %d checks, %d attempts", s, len(w.checks), len(w.attempts))
}
