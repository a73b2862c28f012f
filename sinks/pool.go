package sinks

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

const (
	// fastFor is how long an attempt may hold a fast slot.
	fastFor = time.Second
	// postGrace is how long the results of attempts that have ended are still posted after
	// the pool was told to stop.
	postGrace = 5 * time.Second
	// postPause is the pause after a result could not be posted.
	postPause = time.Second
)

// errCut is why an attempt ends early when the slow slots are full.
var errCut = errors.New("cut short after " + fastFor.String() + ", since too many other receivers are slow")

// slot is what an attempt counts against.
type slot int

const (
	noSlot slot = iota
	fastSlot
	slowSlot
)

// pool makes attempts: at most cfg.Fast of them that are younger than fastFor, at most
// cfg.Slow others. Attempts wait for their slots in order.
type pool struct {
	cfg  *Config
	live *inForce
	book *book

	mu      sync.Mutex
	ctx     context.Context // of run; nil before it
	stopped bool
	used    [slowSlot + 1]int
	waiting [slowSlot + 1][]Attempt
	// held are the attempts that wait until their sink may be used, by their receivers.
	held map[string]*held
	// open counts the attempts that were handed over and whose result was not posted.
	open int
	wg   sync.WaitGroup

	limiters limiters
}

func newPool(cfg *Config, live *inForce, b *book) *pool {
	return &pool{cfg: cfg, live: live, book: b, held: make(map[string]*held)}
}

func (p *pool) limit(s slot) int {
	if s == fastSlot {
		return p.cfg.Fast
	}
	return p.cfg.Slow
}

// hand takes an attempt over. After the pool stopped it is dropped: the next process
// makes it.
func (p *pool) hand(a Attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.open++
	a.owned = p.cfg.Owned(a.Receiver.Sink)
	p.admit(a)
}

// wait makes a wait for a slot. p.mu is held.
func (p *pool) wait(a Attempt) {
	s := fastSlot
	if a.slow {
		s = slowSlot
	}
	p.waiting[s] = append(p.waiting[s], a)
	p.dispatch()
}

// dispatch starts what has a slot. p.mu is held.
func (p *pool) dispatch() {
	if p.ctx == nil || p.ctx.Err() != nil {
		return
	}
	for s := fastSlot; s <= slowSlot; s++ {
		for len(p.waiting[s]) > 0 {
			in, ok := p.room(s)
			if !ok {
				break
			}
			a := p.waiting[s][0]
			p.waiting[s][0] = Attempt{}
			p.waiting[s] = p.waiting[s][1:]
			p.used[in]++
			p.wg.Go(func() { p.attempt(a, in) })
		}
	}
}

// room returns the slot for an attempt that waits for one of kind s. What finds no fast
// slot may have a slow one while half of those are free: receivers that hang from their
// first attempt on would otherwise hold up all others, a second for each round.
func (p *pool) room(s slot) (slot, bool) {
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
	p.ctx = ctx
	p.dispatch()
	p.mu.Unlock()

	<-ctx.Done()
	p.mu.Lock()
	p.stopped = true
	p.open -= len(p.waiting[fastSlot]) + len(p.waiting[slowSlot]) + len(p.held)
	for id, h := range p.held {
		h.timer.Stop()
		delete(p.held, id)
	}
	p.waiting = [slowSlot + 1][]Attempt{}
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}

// attempt makes a, which holds a slot of kind s, and posts its result.
func (p *pool) attempt(a Attempt, s slot) {
	ctx, cut := context.WithCancelCause(p.ctx)
	defer cut(nil)
	h := &holding{pool: p, slot: s}
	if !p.wanted(a) {
		h.release()
		p.closed()
		return
	}
	if a.recalled {
		h.release()
		p.post(a, []ending{{err: context.Canceled}})
		p.closed()
		return
	}
	if s == fastSlot {
		t := time.AfterFunc(fastFor, func() { h.move(cut) })
		defer t.Stop()
	}
	live := p.live.hold()
	defer p.live.letGo(live, p.cfg.closeFailed)
	sink := live.sinks[a.Receiver.Sink]
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(pipeline.TimeoutOf(sink), p.cfg.AttemptTimeout))
	defer cancel()
	ends := p.batch(ctx, sink, a)
	h.release()

	last := &ends[len(ends)-1]
	switch class, after := pipeline.ClassOf(last.err); {
	case last.err == nil:
	case errors.Is(context.Cause(ctx), errCut) && (class == pipeline.ClassCanceled || class == pipeline.ClassRetry && after == 0):
		// What the receiver has said stands; otherwise that is why.
		ambiguous := pipeline.IsAmbiguous(last.err)
		if last.err = errCut; ambiguous {
			last.err = pipeline.Ambiguous(errCut)
		}
	case class != pipeline.ClassCanceled:
	case p.ctx.Err() != nil:
		ends = ends[:len(ends)-1] // broken off: as if it had not begun
	default:
		// Nobody asked it to give up, so it counts: the cancellation must not be seen through.
		last.err = errors.New("the sink gave up: " + last.err.Error())
	}
	if len(ends) > 0 {
		p.post(a, ends)
	}
	p.closed()
}

// wanted reports whether a, which may have waited for long, is still to be made: not where
// the receiver was this process's and is another's now, or was meanwhile.
func (p *pool) wanted(a Attempt) bool {
	id := a.Receiver.Sink
	if (!a.owned || p.cfg.Owned(id)) && p.book.knows(id, a.Number, p.cfg.Epoch(id)) {
		return true
	}
	p.book.lost(id, a.Number)
	return false
}

func (p *pool) closed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// post hands the result to its lane. What was delivered should be known, so it goes on
// for a moment after the pool was told to stop.
func (p *pool) post(a Attempt, ends []ending) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.ctx))
	defer cancel()
	stop := context.AfterFunc(p.ctx, func() { time.AfterFunc(postGrace, cancel) })
	defer stop()
	m := a.result(ends)
	for ctx.Err() == nil {
		epoch := p.cfg.Epoch(m.Key) // before: what is posted may be lost at once
		err := p.cfg.Poster.Post(ctx, m)
		switch {
		case err == nil:
			p.book.posted(m.Key, a.Number, p.cfg.Now(), epoch)
			return
		case errors.Is(err, flow.ErrMoved):
			p.book.lost(m.Key, a.Number)
			return
		}
		p.cfg.Logger.Error("the result of a delivery could not be handed on", "sink", a.Receiver.Sink, "err", err)
		select {
		case <-time.After(postPause):
		case <-p.ctx.Done():
			return
		}
	}
}

// holding is the slot that one attempt counts against.
type holding struct {
	pool *pool
	slot slot // guarded by pool.mu
}

// move changes a fast slot into a slow one, or into none and cuts the attempt short.
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

// held is an attempt that waits until its sink may be used.
type held struct {
	attempt     Attempt
	timer       *time.Timer
	reservation *rate.Reservation
}

// admit makes a wait until its sink may be used, and then for a slot. p.mu is held.
func (p *pool) admit(a Attempt) {
	id, now, d := a.Receiver.Sink, time.Now(), time.Duration(0)
	reservation := p.limiters.reserve(a.Receiver.Sink, p.live.Load().sinks[a.Receiver.Sink], now)
	if reservation != nil {
		d = reservation.DelayFrom(now)
	}
	a.ready = p.cfg.Now().Add(d).UTC()
	p.book.begins(id, a.Number, a.ready)
	if d <= 0 {
		p.wait(a)
		return
	}
	if old := p.held[id]; old != nil { // of an earlier epoch
		old.timer.Stop()
		p.open--
	}
	h := &held{attempt: a, reservation: reservation}
	h.timer = time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.held[id] == h {
			delete(p.held, id)
			p.wait(a)
		}
	})
	p.held[id] = h
}

// recall ends attempt number for a receiver if it has not begun and has a notification of
// subscription, which was cancelled: it ends as if it had been broken off, so that the next
// one has what is still to be told.
func (p *pool) recall(to pipeline.Receiver, number uint64, subscription string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := to.Sink
	if h := p.held[id]; h != nil && h.attempt.Number == number && h.attempt.has(subscription) {
		h.timer.Stop()
		h.reservation.CancelAt(time.Now())
		delete(p.held, id)
		p.book.begins(id, number, p.cfg.Now())
		h.attempt.recalled = true
		p.wait(h.attempt)
		return
	}
	for _, line := range p.waiting {
		for i := range line {
			if a := &line[i]; a.Receiver == to && a.Number == number && a.has(subscription) {
				a.recalled = true
				return
			}
		}
	}
}

// rated makes the rates count that came into force in place of those of before, also for
// what is held.
func (p *pool) rated(before map[string]pipeline.Sink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.limiters.change(before, p.live.Load().sinks)
	var again []Attempt
	for id, h := range p.held {
		if changed[h.attempt.Receiver.Sink] {
			h.timer.Stop()
			delete(p.held, id)
			again = append(again, h.attempt)
		}
	}
	for _, a := range again {
		p.admit(a)
	}
}

// idle reports whether nothing is open but attempts that are held until after by.
func (p *pool) idle(by time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := p.open
	for _, h := range p.held {
		if h.attempt.ready.After(by) {
			open--
		}
	}
	return open == 0
}
