package sinks

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/vokter/vokter/pipeline"
)

// held is an attempt that waits until its sink may be used.
type held struct {
	attempt     Attempt
	timer       *time.Timer
	reservation *rate.Reservation
}

// admit makes a wait until its sink may be used, and then for a slot. p.mu is held.
func (p *pool) admit(a Attempt) {
	id, now, d := a.Receiver.ID(), time.Now(), time.Duration(0)
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
	id := to.ID()
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
