package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
)

// run takes the steps in which everything may go wrong, lets things calm down until nothing is left to
// do, and compares.
func (w *world) run(steps int) error {
	err := w.runSteps(steps)
	if err == nil {
		err = w.drain()
	}
	if err == nil {
		err = w.verify()
	}
	return err
}

// runSteps takes steps up to a number of them.
func (w *world) runSteps(steps int) error {
	for ; w.steps < steps; w.steps++ {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// step lets one random thing happen.
func (w *world) step() error {
	if w.usesKafka() {
		if err := w.injectProcessFault(); err != nil {
			return err
		}
	}
	switch n := w.rng.IntN(1000); {
	case n < 4:
		w.crash(pick(w.rng, w.processes), "between two steps")
		return nil
	case n < 50:
		if s := pick(w.rng, w.sites); w.roundTrip == nil || w.roundTrip.site != s {
			if w.followsLinks && w.rng.IntN(3) == 0 {
				s.editLinks(w.rng, len(w.sites))
			} else {
				s.edit(w.rng)
			}
			w.tracef("%s is edited, links to %v", s.url, s.current.links)
		}
		return nil
	case n < 90:
		w.sendRandomCommand()
		return nil
	case n < 104:
		w.toggleOutsideFault()
		return nil
	case n < 121 && len(w.lateOutcomes) > 0:
		i := w.rng.IntN(len(w.lateOutcomes))
		w.tracef("late outcome of %s", w.lateOutcomes[i].Key)
		w.stats.Duplicates++
		w.publish(w.lateOutcomes[i])
		w.lateOutcomes = slices.Delete(w.lateOutcomes, i, i+1)
		return nil
	case n < 126:
		return w.jumpClock()
	case n < 128:
		w.requestReplay(pick(w.rng, sinkNames), pick(w.rng, []flow.DeadFilter{{}, {Client: pick(w.rng, clients)}, {URL: pick(w.rng, w.sites).url}}))
		return nil
	case n < 190:
		return w.advanceClock(time.Duration(w.rng.IntN(int(20 * time.Second))))
	case n < 270:
		if p := w.processWith(func(p *process) int { return len(p.checks) }); p != nil {
			return w.stepCheck(p)
		}
	case n < 350:
		if p := w.processWith(func(p *process) int { return len(p.attempts) }); p != nil {
			if w.receiversStall() {
				return nil
			}
			w.stepAttempt(p)
			return nil
		}
	}
	return w.doWork()
}

// processWith returns a running process that has some of what n counts, or nil.
func (w *world) processWith(n func(*process) int) *process {
	var ps []*process
	for _, p := range w.processes {
		for range n(p) {
			if p.isRunning() {
				ps = append(ps, p)
			}
		}
	}
	if len(ps) == 0 {
		return nil
	}
	return pick(w.rng, ps)
}

// doWork lets a stage handle a message, a pool make progress, or time pass until one can.
func (w *world) doWork() error {
	hs, open := w.readyWork(), w.urgentLanes()
	checks, attempts := 0, 0
	for _, p := range w.processes {
		if p.isRunning() {
			checks, attempts = checks+len(p.checks), attempts+len(p.attempts)
		}
	}
	n := len(hs) + len(open) + checks + attempts
	if n == 0 {
		// Not until things may be forgotten: for that the clock jumps.
		_, err := w.advanceToWake(func(c consumer, wk engine.Wake) bool { return c.Group == flow.GroupIndex || wk.AtStart })
		return err
	}
	switch i := w.rng.IntN(n); {
	case i < len(hs) && hs[i].c == w.slowConsumer && !w.faultsOver && w.rng.IntN(8) > 0:
		return nil
	case i < len(hs):
		return w.handle(hs[i])
	case i < len(hs)+len(open):
		return w.commitBatch(open[i-len(hs)])
	case i < len(hs)+len(open)+checks:
		return w.stepCheck(w.processWith(func(p *process) int { return len(p.checks) }))
	}
	if w.receiversStall() {
		return nil
	}
	w.stepAttempt(w.processWith(func(p *process) int { return len(p.attempts) }))
	return nil
}

// advanceToWake advances the clock to the first wake of those that count.
func (w *world) advanceToWake(counts func(consumer, engine.Wake) bool) (bool, error) {
	var first time.Time
	for _, l := range w.runningLanes() {
		for c, wk := range l.pendingWakes() {
			if counts(c, wk) && (first.IsZero() || wk.At.Before(first)) {
				first = wk.At
			}
		}
	}
	if first.IsZero() {
		return false, nil
	}
	return true, w.advanceClock(max(first.Sub(w.now), 0))
}

// advanceClock lets time pass, and what waited too long for a transaction be committed.
func (w *world) advanceClock(d time.Duration) error {
	w.now = w.now.Add(d)
	w.clock.CheckedNow()
	return w.flushBatches(false)
}

// toggleOutsideFault begins or ends a fault of a page, of the network or of a receiver.
func (w *world) toggleOutsideFault() {
	r, s := w.receivers, pick(w.rng, w.sites)
	switch w.rng.IntN(11) {
	case 10:
		s.challengesLeft = pick(w.rng, []int{1, 2, 3, 4, rewrittenAfterChecks + 2})
		w.tracef("%s shows a challenge to %d checks", s.url, s.challengesLeft)
	case 0, 1:
		r.down = !r.down
		w.tracef("receiver down: %v", r.down)
	case 2, 3:
		r.gone = !r.gone
		w.tracef("receiver gone: %v", r.gone)
	case 4:
		w.offline = !w.offline
		w.tracef("offline: %v", w.offline)
	default:
		s.broken, s.busy = !s.broken, w.rng.IntN(3) == 0
		w.tracef("%s broken: %v, busy: %v", s.url, s.broken, s.busy)
	}
}

// maxJumpForward is how far ahead of the start a clock is set at most: dead letters are kept
// for 90 days.
const maxJumpForward = 50 * 24 * time.Hour

// jumpClock sets the clock, or lets time pass as while a machine is suspended.
func (w *world) jumpClock() error {
	w.stats.ClockJumps++
	var d time.Duration
	switch w.rng.IntN(6) {
	case 0, 1:
		d = time.Duration(w.rng.IntN(int(2 * time.Hour)))
	case 2:
		d = -time.Duration(w.rng.IntN(int(time.Minute)))
	case 3, 4:
		d = -time.Duration(w.rng.IntN(int(2 * time.Hour)))
	default:
		if d = 10 * 24 * time.Hour; w.now.Add(d).After(startTime.Add(maxJumpForward)) {
			return nil
		}
	}
	w.tracef("the clock jumps by %v", d)
	return w.advanceClock(d)
}

// finalCheckCount is how many more times every page is looked at, so that each document
// has the page's last text in the end, also where it must be seen several times.
const finalCheckCount = 4

// replayRounds is how many times dead letters are replayed in the end.
const replayRounds = 3

// drain ends all faults and lets the stages finish. Pages are looked at a few times more, receivers are
// all well, and what is pending is delivered, and what was given up too.
func (w *world) drain() error {
	w.faultsOver = true
	w.tracef("now all is calm")
	if w.usesKafka() {
		w.endProcessFaults()
	}
	rounds := 0
	for limit := w.steps + 20000; w.steps < limit; w.steps++ {
		if w.usesKafka() {
			w.retryPublishes()
			w.assignLanes()
		}
		if !w.isIdle() {
			if err := w.doWork(); err != nil {
				return err
			}
			continue
		}
		if slices.ContainsFunc(w.runningLanes(), func(l *lane) bool { return l.batch.messages > 0 }) {
			if err := w.flushBatches(true); err != nil {
				return err
			}
			continue
		}
		unseen := func(c consumer, wk engine.Wake) bool {
			s := w.siteByURL(wk.Key)
			return c.Group == flow.GroupIndex && s != nil && s.answeredFinalChecks() < finalCheckCount
		}
		if slept, err := w.advanceToWake(unseen); slept || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		pending, err := w.countUndelivered()
		if err != nil {
			return err
		}
		if pending == 0 {
			if rounds++; rounds > replayRounds || !w.replayDeadLetters() {
				return nil
			}
			continue
		}
		slept, err := w.advanceToWake(func(c consumer, _ engine.Wake) bool { return c.Group == flow.GroupDelivery })
		if err != nil {
			return err
		}
		if !slept {
			return fmt.Errorf("%d notifications are pending and nothing will wake delivery", pending)
		}
	}
	return fmt.Errorf("never done: %s", w.describePending())
}

// isIdle reports whether nothing waits to be handled, fetched or attempted.
func (w *world) isIdle() bool {
	n := len(w.readyWork()) + len(w.urgentLanes())
	for _, p := range w.processes {
		n += len(p.checks) + len(p.attempts)
	}
	return n == 0
}

// countUndelivered counts the notifications that are pending, or wait in digests.
func (w *world) countUndelivered() (int, error) {
	n := 0
	for _, sink := range sinkNames {
		q, err := delivery.Load(engine.View(w.ownedLane(sink).state, engine.Place{Group: deliveryConsumer.Group, Key: sink}))
		if err != nil {
			return 0, err
		}
		n += q.Pending() + q.Windows.Items
	}
	return n, nil
}

// replayDeadLetters brings back what is dead of receivers that are well, if anything is.
func (w *world) replayDeadLetters() bool {
	any := false
	for _, sink := range sinkNames {
		for id := range w.deadLetters(sink) {
			if sink != pickySink || refusalOf(id) == nil {
				any = true
				w.requestReplay(sink, flow.DeadFilter{})
				break
			}
		}
	}
	return any
}

func (w *world) describePending() string {
	s := ""
	for _, h := range w.readyWork() {
		s += fmt.Sprintf(" %v:%s of %s", h.c, h.message.Type, h.message.Key)
	}
	for _, p := range w.processes {
		s += fmt.Sprintf("; process %d: %d checks, %d attempts", p.id, len(p.checks), len(p.attempts))
	}
	return s
}
