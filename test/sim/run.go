package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/sinks"
)

// run takes the steps in which everything may go wrong, lets things calm down until nothing is left to
// do, and compares.
func (w *world) run(steps int) error {
	err := w.until(steps)
	if err == nil {
		err = w.settle()
	}
	if err == nil {
		err = w.verify()
	}
	return err
}

// until takes steps up to a number of them.
func (w *world) until(steps int) error {
	for ; w.steps < steps; w.steps++ {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// step lets one thing happen.
func (w *world) step() error {
	if w.kafka() {
		if err := w.disturb(); err != nil {
			return err
		}
	}
	switch n := w.rng.IntN(1000); {
	case n < 4:
		w.crash(pick(w.rng, w.processes), "between two steps")
		return nil
	case n < 50:
		if s := pick(w.rng, w.sites); w.shuttling == nil || w.shuttling.s != s {
			if w.linked && w.rng.IntN(3) == 0 {
				s.relink(w.rng, len(w.sites))
			} else {
				s.edit(w.rng)
			}
			w.tracef("%s is edited, links to %v", s.url, s.body.links)
		}
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
		return w.jump()
	case n < 128:
		w.replay(pick(w.rng, sinkNames), pick(w.rng, []flow.DeadFilter{{}, {Client: pick(w.rng, clients)}, {URL: pick(w.rng, w.sites).url}}))
		return nil
	case n < 190:
		return w.advance(time.Duration(w.rng.IntN(int(20 * time.Second))))
	case n < 270:
		if p := w.busy(func(p *process) int { return len(p.checks) }); p != nil {
			return w.stepCheck(p)
		}
	case n < 350:
		if p := w.busy(func(p *process) int { return len(p.attempts) }); p != nil {
			if w.idles() {
				return nil
			}
			w.stepAttempt(p)
			return nil
		}
	}
	return w.work()
}

// busy returns a process that works and has some of what n counts, or nil.
func (w *world) busy(n func(*process) int) *process {
	var ps []*process
	for _, p := range w.processes {
		for range n(p) {
			if p.works() {
				ps = append(ps, p)
			}
		}
	}
	if len(ps) == 0 {
		return nil
	}
	return pick(w.rng, ps)
}

// work lets a stage handle something, or a pool get on, or time pass until one can.
func (w *world) work() error {
	hs, open := w.ready(), w.open()
	checks, attempts := 0, 0
	for _, p := range w.processes {
		if p.works() {
			checks, attempts = checks+len(p.checks), attempts+len(p.attempts)
		}
	}
	n := len(hs) + len(open) + checks + attempts
	if n == 0 {
		// Not until things may be forgotten: for that the clock jumps.
		_, err := w.sleep(func(c consumer, wk engine.Wake) bool { return c.Group == flow.GroupIndex || wk.AtStart })
		return err
	}
	switch i := w.rng.IntN(n); {
	case i < len(hs) && hs[i].c == w.slow && !w.calm && w.rng.IntN(8) > 0:
		return nil
	case i < len(hs):
		return w.handle(hs[i])
	case i < len(hs)+len(open):
		return w.commit(open[i-len(hs)])
	case i < len(hs)+len(open)+checks:
		return w.stepCheck(w.busy(func(p *process) int { return len(p.checks) }))
	}
	if w.idles() {
		return nil
	}
	w.stepAttempt(w.busy(func(p *process) int { return len(p.attempts) }))
	return nil
}

// sleep advances the clock to the first wake of those that count.
func (w *world) sleep(counts func(consumer, engine.Wake) bool) (bool, error) {
	var first time.Time
	for _, l := range w.working() {
		for c, wk := range l.sleeping() {
			if counts(c, wk) && (first.IsZero() || wk.At.Before(first)) {
				first = wk.At
			}
		}
	}
	if first.IsZero() {
		return false, nil
	}
	return true, w.advance(max(first.Sub(w.now), 0))
}

// advance lets time pass, and what waited too long for a transaction be committed.
func (w *world) advance(d time.Duration) error {
	w.now = w.now.Add(d)
	w.clock.CheckedNow()
	return w.flush(false)
}

// turn makes something outside go wrong, or well again.
func (w *world) turn() {
	r, s := w.receivers, pick(w.rng, w.sites)
	switch w.rng.IntN(11) {
	case 10:
		s.walls = pick(w.rng, []int{1, 2, 3, 4, rewrittenAfter + 2})
		w.tracef("%s shows a challenge to %d checks", s.url, s.walls)
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
func (w *world) jump() error {
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
			return nil
		}
	}
	w.tracef("the clock jumps by %v", d)
	return w.advance(d)
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
	if w.kafka() {
		w.recover()
	}
	rounds := 0
	for limit := w.steps + 20000; w.steps < limit; w.steps++ {
		if w.kafka() {
			w.retry()
			w.assign()
		}
		if !w.idle() {
			if w.waited > maxWaits {
				return fmt.Errorf("stuck: %s", w.pending())
			}
			if err := w.work(); err != nil {
				return err
			}
			continue
		}
		if slices.ContainsFunc(w.working(), func(l *lane) bool { return l.batch.n > 0 }) {
			if err := w.flush(true); err != nil {
				return err
			}
			continue
		}
		unseen := func(c consumer, wk engine.Wake) bool {
			s := w.site(wk.Key)
			return c.Group == flow.GroupIndex && s != nil && s.looked() < checksWhenCalm
		}
		if slept, err := w.sleep(unseen); slept || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		pending, err := w.undelivered()
		if err != nil {
			return err
		}
		if pending == 0 {
			if rounds++; rounds > replayRounds || !w.replayAll() {
				return nil
			}
			continue
		}
		slept, err := w.sleep(func(c consumer, _ engine.Wake) bool { return c.Group == flow.GroupDelivery })
		if err != nil {
			return err
		}
		if !slept {
			return fmt.Errorf("%d notifications are pending and nothing will wake delivery", pending)
		}
	}
	return fmt.Errorf("never done: %s", w.pending())
}

// idle reports whether nothing is to be handled, fetched or attempted.
func (w *world) idle() bool {
	n := len(w.ready()) + len(w.open())
	for _, p := range w.processes {
		n += len(p.checks) + len(p.attempts)
	}
	return n == 0
}

// undelivered counts the notifications that are pending, or wait in digests.
func (w *world) undelivered() (int, error) {
	n := 0
	for _, sink := range sinkNames {
		q, err := sinks.Load(engine.View(w.holder(sink).state, engine.Place{Group: deliveryConsumer.Group, Key: sink}))
		if err != nil {
			return 0, err
		}
		n += q.Pending() + q.Windows.Items
	}
	return n, nil
}

// replayAll brings back what is dead of receivers that are well, if anything is.
func (w *world) replayAll() bool {
	any := false
	for _, sink := range sinkNames {
		for id := range w.letters(sink) {
			if sink != picky || refuses(id) == nil {
				any = true
				w.replay(sink, flow.DeadFilter{})
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
	for _, p := range w.processes {
		s += fmt.Sprintf("; process %d: %d checks, %d attempts", p.name, len(p.checks), len(p.attempts))
	}
	return s
}
