package sinks

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/vokter/vokter/internal/warm"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

const (
	// fastFor is how long an attempt may hold a fast slot.
	fastFor = time.Second
	// postGrace is how long a pool that stops still waits for results to be posted.
	postGrace = 5 * time.Second
	// postPause is the pause after a result could not be posted.
	postPause = time.Second
)

// errCut is why an attempt is canceled when the slow slots are full.
var errCut = errors.New("cut short after " + fastFor.String() + ", since too many other receivers are slow")

// slot is the kind of slot that an attempt holds.
type slot int

const (
	noSlot slot = iota
	fastSlot
	slowSlot
)

// pool makes attempts: at most cfg.Fast that are younger than fastFor, and at most cfg.Slow
// others. The mutex of flights guards its fields, too.
type pool struct {
	flights
	cfg  *Config
	live *liveSettings

	ctx     context.Context // of run; nil before it
	posting context.Context // of the results: done postGrace after ctx
	workers *warm.Pool      // calls attempt
	stopped bool
	used    [slowSlot + 1]int
	// queued are the flights that wait for a slot, in order.
	queued   [slowSlot + 1][]*flight
	wg       sync.WaitGroup
	limiters limiters
}

func newPool(cfg *Config, live *liveSettings) *pool {
	return &pool{
		flights: flights{receivers: make(map[string]entry), open: make(map[*flight]struct{})},
		cfg:     cfg, live: live,
	}
}

func (p *pool) limit(s slot) int {
	if s == fastSlot {
		return p.cfg.Fast
	}
	return p.cfg.Slow
}

// hand takes over a committed flight. After the pool has stopped it is ignored: the next
// process repeats the attempt.
func (p *pool) hand(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.open[f] = struct{}{}
	f.owned = p.cfg.Owned(f.Receiver.Sink)
	p.admit(f)
}

// admit makes f wait until its sink may be used, and then for a slot. p.mu is held.
func (p *pool) admit(f *flight) {
	now, delay := time.Now(), time.Duration(0)
	f.reservation = p.limiters.reserve(f.Receiver.Sink, p.cfg.sink(p.live.Load(), f.Receiver.Sink), now)
	if f.reservation != nil {
		delay = f.reservation.DelayFrom(now)
	}
	f.ready = p.cfg.Now().Add(delay).UTC()
	if delay <= 0 {
		p.queue(f)
		return
	}
	f.phase = phaseHeld
	var timer *time.Timer
	timer = time.AfterFunc(delay, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, open := p.open[f]; open && f.phase == phaseHeld && f.timer == timer {
			p.queue(f)
		}
	})
	f.timer = timer
}

// queue makes f wait for a slot. p.mu is held.
func (p *pool) queue(f *flight) {
	s := fastSlot
	if f.slow {
		s = slowSlot
	}
	f.phase = phaseQueued
	p.queued[s] = append(p.queued[s], f)
	p.dispatch()
}

// dispatch starts queued flights while slots are free. p.mu is held.
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
			p.used[in]++
			p.wg.Add(1)
			p.workers.Go(func() {
				defer p.wg.Done()
				p.attempt(f, in)
			})
		}
	}
}

// freeSlot returns a free slot for a flight that waits for one of kind s. While half of the
// slow slots are free, a flight that finds no fast slot gets one of them. Otherwise receivers
// that hang from their first attempt on would block all others, for a second each round.
func (p *pool) freeSlot(s slot) (slot, bool) {
	switch {
	case p.used[s] < p.limit(s):
		return s, true
	case s == fastSlot && p.used[slowSlot] < p.cfg.Slow/2:
		return slowSlot, true
	}
	return s, false
}

func (p *pool) run(ctx context.Context) error {
	p.mu.Lock()
	if p.ctx != nil {
		p.mu.Unlock()
		return errors.New("sinks: Run was called twice")
	}
	posting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	p.ctx, p.posting, p.workers = ctx, posting, warm.New(p.cfg.Fast)
	defer p.workers.Close()
	p.dispatch()
	p.mu.Unlock()

	p.forgetUntil(ctx)
	defer time.AfterFunc(postGrace, cancel).Stop()
	p.mu.Lock()
	p.stopped = true
	for f := range p.open {
		if f.phase != phaseRunning {
			p.close(f)
		}
	}
	p.queued = [slowSlot + 1][]*flight{}
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

// attempt makes f, which holds a slot of kind s, and posts its result.
func (p *pool) attempt(f *flight, s slot) {
	defer p.closed(f)
	ctx, cut := context.WithCancelCause(p.ctx)
	defer cut(nil)
	h := &holding{pool: p, slot: s}
	if !p.wanted(f) {
		h.release()
		return
	}
	if f.recalled {
		h.release()
		p.answer(f, []ending{{err: context.Canceled}})
		return
	}
	if s == fastSlot {
		t := time.AfterFunc(fastFor, func() { h.move(cut) })
		defer t.Stop()
	}
	live := p.live.acquire()
	defer p.live.release(live, p.cfg.closeFailed)
	sink := p.cfg.sink(live, f.Receiver.Sink)
	ctx, cancel := context.WithTimeout(ctx, p.cfg.timeout(sink))
	defer cancel()
	ends := p.batch(ctx, sink, f.Attempt)
	h.release()

	last := &ends[len(ends)-1]
	switch class, after := failure.ClassOf(last.err); {
	case last.err == nil:
	case errors.Is(context.Cause(ctx), errCut) && (class == failure.ClassCanceled || class == failure.ClassRetry && after == 0):
		// Not where the receiver answered: its error is kept.
		ambiguous := failure.IsAmbiguous(last.err)
		if last.err = errCut; ambiguous {
			last.err = failure.Ambiguous(errCut)
		}
	case class != failure.ClassCanceled:
	case p.ctx.Err() != nil:
		ends = ends[:len(ends)-1] // the pool stops: not counted
	default:
		// A sink that cancels by itself has failed. The new error hides context.Canceled.
		last.err = errors.New("the sink gave up: " + last.err.Error())
	}
	if len(ends) > 0 {
		p.answer(f, ends)
	}
}

// wanted reports whether f, which may have waited for long, must still be made: not if its
// receiver belongs to another process, or did in between.
func (p *pool) wanted(f *flight) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := f.Receiver.Sink
	if p.makes(f) && (!f.owned || p.cfg.Owned(id)) {
		return true
	}
	p.lost(f)
	return false
}

func (p *pool) closed(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close(f)
}

// answer keeps the result of f and posts it.
func (p *pool) answer(f *flight, ends []ending) {
	p.mu.Lock()
	f.answer = f.result(ends, f.ready)
	p.mu.Unlock()
	p.post(f)
}

// postAgain posts the result of the attempt in flight of q again, if this process has it and it was
// posted in an earlier epoch or refused. Where another process had the receiver since, q has another
// attempt.
func (p *pool) postAgain(receiver string, q Queue) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.attempts.Committed(receiver)
	f := l.Value
	if !ok || p.stopped || l.ID != q.Attempt || !f.began.Equal(q.Began) || f.answer.ID == "" {
		return false
	}
	p.attempts.TakeBack(receiver, q.Attempt)
	p.open[f] = struct{}{}
	p.wg.Add(1)
	p.workers.Go(func() {
		defer p.wg.Done()
		defer p.closed(f)
		p.post(f)
	})
	return true
}

// noEpoch is the epoch of results that were refused.
const noEpoch = math.MaxUint64

// post posts the result of f to its lane. A lost result means a second delivery, so a Post that waits
// for room may go on for postGrace after the pool was stopped.
func (p *pool) post(f *flight) {
	m := f.answer
	for p.posting.Err() == nil {
		epoch := p.cfg.Epoch(m.Key) // before Post: the epoch may end right after it
		err := p.cfg.Poster.Post(p.posting, m)
		switch {
		case err == nil:
			p.attempts.HandOn(m.Key, f.Number, epoch, p.cfg.Now())
			return
		case errors.Is(err, flow.ErrMoved):
			p.attempts.HandOn(m.Key, f.Number, noEpoch, p.cfg.Now()) // postAgain posts it when the receiver comes back
			if !p.cfg.Owned(m.Key) {
				p.lighten(f)
				return
			}
		default:
			p.cfg.Logger.Error("the result of a delivery could not be handed on", "sink", f.Receiver.Sink, "err", err)
		}
		select {
		case <-time.After(postPause):
		case <-p.ctx.Done():
			return
		}
	}
}

// holding is the slot of one running attempt.
type holding struct {
	pool *pool
	slot slot // guarded by pool.mu
}

// move changes a fast slot into a slow one. If none is free it cancels the attempt.
func (h *holding) move(cut context.CancelCauseFunc) {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.slot != fastSlot {
		return
	}
	p.used[fastSlot]--
	if p.used[slowSlot] < p.cfg.Slow {
		h.slot = slowSlot
		p.used[slowSlot]++
	} else {
		h.slot = noSlot
		cut(errCut)
	}
	p.dispatch()
}

func (h *holding) release() {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.slot != noSlot {
		p.used[h.slot]--
		h.slot = noSlot
	}
	p.dispatch()
}

// recall cancels an attempt that has not called its sink yet, if it has a notification of
// subscription, which was cancelled. The next attempt has the other notifications.
func (p *pool) recall(receiver string, number uint64, subscription string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.attempts.Committed(receiver)
	f := l.Value
	if !ok || f.Number != number || f.phase != phaseHeld && f.phase != phaseQueued || !f.has(subscription) {
		return
	}
	f.recalled = true
	if f.phase == phaseHeld {
		f.timer.Stop()
		f.reservation.CancelAt(time.Now())
		f.ready = p.cfg.Now().UTC()
		p.queue(f)
	}
}

// ratesChanged applies the rates that replaced those of before, also to the flights that are
// held.
func (p *pool) ratesChanged(before map[string]pipeline.Sink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.limiters.change(before, p.live.Load().sinks)
	var again []*flight
	for f := range p.open {
		if f.phase == phaseHeld && changed[f.Receiver.Sink] {
			f.timer.Stop()
			again = append(again, f)
		}
	}
	for _, f := range again {
		p.admit(f)
	}
}
