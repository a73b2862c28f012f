package sinks

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// maxBatch and maxBatchBytes bound what one attempt delivers, whatever its sink takes: all of
// it is held in memory, and ends in one transaction.
const (
	maxBatch      = 100
	maxBatchBytes = 1 << 20
)

// batchFor is for how long an attempt begins to deliver what it has. It bounds what is
// delivered twice after a crash.
const batchFor = 100 * time.Millisecond

// include puts a pending notification into an attempt.
func (w *work) include(a *Attempt, p pendingRecord) error {
	note, err := w.st.noteOf(p.Addressed.Document, w.now.Add(-w.policy.withDefaults().Remember))
	if err != nil {
		return err
	}
	a.Notifications = append(a.Notifications, p.Addressed.Notification)
	a.contexts = append(a.contexts, attemptContext{p.Addressed.Document, note, p.Addressed.Subscription, p.Trace})
	return nil
}

// fill puts the pending notifications from seq on into an attempt, so that it has most, or as
// many as its sink takes at a time, up to the first whose subscription was cancelled.
func (w *work) fill(a *Attempt, seq uint64, most int) error {
	limit, _ := pipeline.BatchOf(w.d.live.Load().sinks[a.Receiver.Sink])
	limit = min(limit, maxBatch, most)
	for bytes := 0; seq < w.q.Next && len(a.Notifications) < limit; seq++ {
		p, err := w.st.pending(seq)
		if err != nil {
			return err
		}
		if w.marked {
			if withdrawn, err := w.st.withdrawn(p.Addressed.Subscription); err != nil || withdrawn {
				return err
			}
		}
		if bytes += p.size; bytes > maxBatchBytes {
			return nil
		}
		if err := w.include(a, p); err != nil {
			return err
		}
	}
	return nil
}

// batch delivers the Notifications of a to s until one fails, the time for it is over, or
// ctx is done, and returns how each ended that was tried: at least one, and only the last
// with an error. Those that s does not take at a time, since it has replaced another sink, are
// left to the next attempt.
func (p *pool) batch(ctx context.Context, s pipeline.Sink, a Attempt) []ending {
	limit, atOnce := pipeline.BatchOf(s)
	began := time.Now()
	var ends []ending
	for len(ends) < min(limit, len(a.Notifications)) {
		if len(ends) > 0 && (ctx.Err() != nil || time.Since(began) >= batchFor) {
			break
		}
		for _, e := range p.together(ctx, s, a, len(ends), a.distinct(len(ends), min(atOnce, limit-len(ends)))) {
			if ends = append(ends, e); e.err != nil {
				return ends
			}
			a.noted(len(ends), e.said.Note)
		}
	}
	return ends
}

// together delivers n of the Notifications of a to s, from the number from on, at the same
// time.
func (p *pool) together(ctx context.Context, s pipeline.Sink, a Attempt, from, n int) []ending {
	ends := make([]ending, n)
	var wg sync.WaitGroup
	for i := range n - 1 {
		wg.Go(func() { ends[i] = p.deliver(ctx, s, a, from+i) })
	}
	ends[n-1] = p.deliver(ctx, s, a, from+n-1) // often the only one
	wg.Wait()
	return ends
}

// distinct returns how many of the Notifications, from the number from on, are of different
// documents, at most limit.
func (a Attempt) distinct(from, limit int) int {
	seen := make(map[string]bool)
	for _, c := range a.contexts[from:] {
		if seen[c.document] || len(seen) == limit {
			break
		}
		seen[c.document] = true
	}
	return len(seen)
}

// noted gives what was noted with one of the Notifications to those of its document among
// the others, from the number from on.
func (a Attempt) noted(from int, note *string) {
	if note == nil {
		return
	}
	document := a.contexts[from-1].document
	for i := from; i < len(a.contexts); i++ {
		if a.contexts[i].document == document {
			a.contexts[i].note = *note
		}
	}
}

// deliver calls s for the notification i of a; a panic there is a failed attempt.
func (p *pool) deliver(ctx context.Context, s pipeline.Sink, a Attempt, i int) (e ending) {
	if s == nil {
		return ending{err: fmt.Errorf("no sink named %q is configured", a.Receiver.Sink)}
	}
	h := &handle{document: a.contexts[i].document, note: a.contexts[i].note}
	defer func() {
		if r := recover(); r != nil {
			p.cfg.Logger.Error("a sink panicked", "sink", a.Receiver.Sink, "panic", oneLine(fmt.Sprint(r)), "stack", string(debug.Stack()))
			e.err = fmt.Errorf("the sink panicked: %v", r)
		}
		e.said = h.end()
	}()
	e.err = s.Deliver(pipeline.WithAttempt(ctx, h), a.Notifications[i])
	return e
}
