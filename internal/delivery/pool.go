package delivery

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vokter/vokter/internal/memory"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

const (
	// maxFastTime is how long an attempt may hold a fast slot.
	maxFastTime = time.Second
	// postGrace is how long a pool that stops still waits for results to be posted.
	postGrace = 5 * time.Second
	// postRetryPause is the pause after a result could not be posted.
	postRetryPause = time.Second
)

// errCutShort is why an attempt is canceled when the slow slots are full.
var errCutShort = errors.New("cut short after " + maxFastTime.String() + ", since too many other receivers are slow")

// slot is the kind of slot that an attempt holds.
type slot int

const (
	noSlot slot = iota
	fastSlot
	slowSlot
)

// pool makes attempts: at most cfg.Fast that are younger than maxFastTime, and at most cfg.Slow
// others. The mutex of attemptTracker guards its fields, too.
type pool struct {
	attemptTracker
	cfg  *Config
	live *liveSettings

	ctx       context.Context // of run; nil before it
	posting   context.Context // of the results: done postGrace after ctx
	workers   *memory.Pool    // calls runAttempt
	stopped   bool
	usedSlots [slowSlot + 1]int
	// queued are the attempts that wait for a slot, in order.
	queued   [slowSlot + 1][]*inFlightAttempt
	wg       sync.WaitGroup
	limiters limiters
	// nudgedAt says when the failing receivers of a host were last nudged.
	nudgedAt map[string]time.Time
}

func newPool(cfg *Config, live *liveSettings) *pool {
	return &pool{
		attemptTracker: attemptTracker{receivers: make(map[string]receiverInfo), failing: make(map[string]struct{}), openAttempts: make(map[*inFlightAttempt]struct{})},
		cfg:            cfg, live: live,
	}
}

func (p *pool) slotLimit(s slot) int {
	if s == fastSlot {
		return p.cfg.Fast
	}
	return p.cfg.Slow
}

// accept takes over a committed attempt. After the pool has stopped it is ignored: the next
// process repeats the attempt.
func (p *pool) accept(f *inFlightAttempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.openAttempts[f] = struct{}{}
	p.waitForRate(f)
}

// waitForRate makes f wait until its sink may be used, and then for a slot. p.mu is held.
func (p *pool) waitForRate(f *inFlightAttempt) {
	now, delay := time.Now(), time.Duration(0)
	f.reservation = p.limiters.reserve(f.Receiver.Sink, p.cfg.sink(p.live.Load(), f.Receiver.Sink), now)
	if f.reservation != nil {
		delay = f.reservation.DelayFrom(now)
	}
	f.readyAt = p.cfg.Now().Add(delay).UTC()
	if delay <= 0 {
		p.waitForSlot(f)
		return
	}
	f.phase = phaseRateWait
	var timer *time.Timer
	timer = time.AfterFunc(delay, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, open := p.openAttempts[f]; open && f.phase == phaseRateWait && f.timer == timer {
			p.waitForSlot(f)
		}
	})
	f.timer = timer
}

// waitForSlot makes f wait for a slot. p.mu is held.
func (p *pool) waitForSlot(f *inFlightAttempt) {
	s := fastSlot
	if f.needsSlowSlot {
		s = slowSlot
	}
	f.phase = phaseQueued
	p.queued[s] = append(p.queued[s], f)
	p.dispatch()
}

// dispatch starts queued attempts while slots are free. p.mu is held.
func (p *pool) dispatch() {
	if p.ctx == nil || p.ctx.Err() != nil {
		return
	}
	for s := fastSlot; s <= slowSlot; s++ {
		for len(p.queued[s]) > 0 {
			in, ok := p.freeSlot(s)
			if !ok {
				break
			}
			f := p.queued[s][0]
			p.queued[s][0] = nil
			p.queued[s] = p.queued[s][1:]
			f.phase = phaseRunning
			p.usedSlots[in]++
			p.wg.Add(1)
			p.workers.Go(func() {
				defer p.wg.Done()
				p.runAttempt(f, in)
			})
		}
	}
}

// freeSlot returns a free slot for an attempt that waits for one of kind s. While half of the
// slow slots are free, an attempt that finds no fast slot gets one of them. Otherwise receivers
// that hang from their first attempt on would block all others, for a second each round.
func (p *pool) freeSlot(s slot) (slot, bool) {
	switch {
	case p.usedSlots[s] < p.slotLimit(s):
		return s, true
	case s == fastSlot && p.usedSlots[slowSlot] < p.cfg.Slow/2:
		return slowSlot, true
	}
	return s, false
}

func (p *pool) run(ctx context.Context) error {
	p.mu.Lock()
	if p.ctx != nil {
		p.mu.Unlock()
		return errors.New("delivery: Run was called twice")
	}
	posting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	p.ctx, p.posting, p.workers = ctx, posting, memory.NewPool(p.cfg.Fast)
	defer p.workers.Close()
	p.dispatch()
	p.mu.Unlock()

	p.forgetUntil(ctx)
	defer time.AfterFunc(postGrace, cancel).Stop()
	p.mu.Lock()
	p.stopped = true
	for f := range p.openAttempts {
		if f.phase != phaseRunning {
			p.removeLocked(f)
		}
	}
	p.queued = [slowSlot + 1][]*inFlightAttempt{}
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}

// forgetUntil forgets the receivers of other processes from time to time, until ctx is done.
func (p *pool) forgetUntil(ctx context.Context) {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.forget(p.cfg.Owned)
		case <-ctx.Done():
			return
		}
	}
}

// runAttempt makes the attempt f, which holds a slot of kind s, and posts its result.
func (p *pool) runAttempt(f *inFlightAttempt, s slot) {
	defer p.remove(f)
	ctx, cut := context.WithCancelCause(p.ctx)
	defer cut(nil)
	h := &heldSlot{pool: p, slot: s}
	if !p.isStillWanted(f) {
		h.release()
		return
	}
	if f.cancelled {
		h.release()
		p.postResult(f, []deliveryResult{{err: context.Canceled}})
		return
	}
	if s == fastSlot {
		t := time.AfterFunc(maxFastTime, func() { h.moveToSlow(cut) })
		defer t.Stop()
	}
	live := p.live.acquire()
	defer p.live.release(live, p.cfg.closeFailed)
	sink := p.cfg.sink(live, f.Receiver.Sink)
	ctx, cancel := context.WithTimeout(ctx, p.cfg.timeout(sink))
	defer cancel()
	ends := p.deliverBatch(ctx, sink, f.Attempt)
	h.release()

	last := &ends[len(ends)-1]
	if last.err == nil {
		p.nudgeHost(live, f.Receiver.Sink)
	}
	switch class, after := failure.ClassOf(last.err); {
	case last.err == nil:
	case errors.Is(context.Cause(ctx), errCutShort) && (class == failure.ClassCanceled || class == failure.ClassRetry && after == 0):
		// Not where the receiver answered: its error is kept.
		ambiguous := failure.IsAmbiguous(last.err)
		if last.err = errCutShort; ambiguous {
			last.err = failure.Ambiguous(errCutShort)
		}
	case class != failure.ClassCanceled:
	case p.ctx.Err() != nil:
		ends = ends[:len(ends)-1] // the pool stops: not counted
	default:
		// A sink that cancels by itself has failed. The new error hides context.Canceled.
		last.err = errors.New("the sink gave up: " + last.err.Error())
	}
	if len(ends) > 0 {
		p.postResult(f, ends)
	}
}

// isStillWanted reports whether f counts: not if its receiver belongs to another process, or did since f began.
func (p *pool) isStillWanted(f *inFlightAttempt) bool {
	l, ok := p.attempts.Committed(f.Receiver.Sink)
	return ok && l.Value == f && l.Epoch == p.cfg.Epoch(f.Receiver.Sink) && p.cfg.Owned(f.Receiver.Sink)
}

func (p *pool) remove(f *inFlightAttempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeLocked(f)
}

// postResult posts the result of f to its lane while f counts. A lost result means a second delivery, so a Post
// that waits for room may go on for postGrace after the pool was stopped.
func (p *pool) postResult(f *inFlightAttempt, ends []deliveryResult) {
	m := f.newResult(ends, f.readyAt)
	for p.posting.Err() == nil && p.isStillWanted(f) {
		err := p.cfg.Poster.Post(p.posting, m)
		switch {
		case err == nil:
			p.mu.Lock()
			f.phase = phasePosted
			p.mu.Unlock()
			return
		case errors.Is(err, flow.ErrMoved):
			return
		}
		p.cfg.Logger.Error("the result of a delivery could not be handed on", "sink", f.Receiver.Sink, "err", err)
		select {
		case <-time.After(postRetryPause):
		case <-p.ctx.Done():
			return
		}
	}
}

// heldSlot is the slot of one running attempt.
type heldSlot struct {
	pool *pool
	slot slot // guarded by pool.mu
}

// moveToSlow changes a fast slot into a slow one. If none is free it cancels the attempt.
func (h *heldSlot) moveToSlow(cut context.CancelCauseFunc) {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.slot != fastSlot {
		return
	}
	p.usedSlots[fastSlot]--
	if p.usedSlots[slowSlot] < p.cfg.Slow {
		h.slot = slowSlot
		p.usedSlots[slowSlot]++
	} else {
		h.slot = noSlot
		cut(errCutShort)
	}
	p.dispatch()
}

func (h *heldSlot) release() {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.slot != noSlot {
		p.usedSlots[h.slot]--
		h.slot = noSlot
	}
	p.dispatch()
}

// cancelWithdrawn cancels an attempt that has not called its sink yet, if it has a notification of
// subscription, which was cancelled. The next attempt has the other notifications.
func (p *pool) cancelWithdrawn(receiver string, number uint64, subscription string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.attempts.Committed(receiver)
	f := l.Value
	if !ok || f.Number != number || f.phase != phaseRateWait && f.phase != phaseQueued || !f.hasSubscription(subscription) {
		return
	}
	f.cancelled = true
	if f.phase == phaseRateWait {
		f.timer.Stop()
		f.reservation.CancelAt(time.Now())
		f.readyAt = p.cfg.Now().UTC()
		p.waitForSlot(f)
	}
}

// updateRates applies the rates that replaced those of before, also to the attempts that
// wait for them.
func (p *pool) updateRates(before map[string]pipeline.Sink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.limiters.dropChanged(before, p.live.Load().sinks)
	var waiting []*inFlightAttempt
	for f := range p.openAttempts {
		if f.phase == phaseRateWait && changed[f.Receiver.Sink] {
			f.timer.Stop()
			waiting = append(waiting, f)
		}
	}
	for _, f := range waiting {
		p.waitForRate(f)
	}
}
