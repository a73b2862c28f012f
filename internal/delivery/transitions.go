package delivery

import (
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// apply returns the Queue after ev, and the actions that follow, in order. withdrawn reports
// whether the subscription of a pending notification was cancelled; nil means that none was.
// The last action is always a scheduleWake, which replaces earlier ones. A result of another attempt
// than the one in flight changes nothing.
func (p Policy) apply(q Queue, ev event, withdrawn func(seq uint64) bool) (Queue, []action) {
	p = p.withDefaults()
	if withdrawn == nil {
		withdrawn = func(uint64) bool { return false }
	}
	at := ev.at()
	if ev, ok := ev.(attemptEnded); ok && (!q.InFlight || ev.Attempt != q.Attempt) {
		return q, nil
	}
	q.clampTimes(at, p)
	var acts []action
	switch ev := ev.(type) {
	case enqueued:
		q.enqueue(at)
		p.bringForward(&q, at)
	case nudged:
		p.bringForward(&q, at)
	case retryRequested:
		q.retryNow()
	case attemptLost:
		q.undoAttempt()
	case recordStored:
		q.WithdrawnMarkers += ev.Markers
		q.schedulePrune(at, p)
	case pruned:
		q.applyPruned(ev)
	case attemptEnded:
		q.excludeRateWait(earlier(ev.Ready, at))
		q.detectStandstill(at)
		began := q.AttemptBegan
		q.InFlight, q.AttemptBegan = false, time.Time{}
		acts = q.reportDegraded(at, ev.Degraded)
		for range ev.DeliveredBefore {
			acts = append(acts, q.applyDelivered(at)...)
			q.TriedSince = began
		}
		if q.LastBatch = ev.DeliveredBefore; ev.Outcome.Delivered {
			q.LastBatch++
			acts = append(acts, q.applyDelivered(at)...)
		} else {
			acts = append(acts, p.applyFailed(&q, ev, withdrawn)...)
		}
	}
	_, result := ev.(attemptEnded)
	taken, more := q.clearHead(withdrawn, p.mustPassOn(q, at, result))
	acts = append(acts, taken...)
	if p.pass.hasFallback {
		acts = q.passOnGivenUp(acts)
	}
	q.clearLimit()
	if len(acts) > 0 {
		q.schedulePrune(at, p)
	}
	if !q.PruneAt.IsZero() && !at.Before(q.PruneAt) {
		acts = append(acts, pruneRecords{Before: at.Add(-p.Remember)})
		q.PruneAt = at.Add(pruneInterval)
	}
	if q.Pending() > 0 && !q.InFlight && !more && !p.paused && !at.Before(q.Due) {
		q.detectStandstill(at)
		q.Attempt++
		q.InFlight, q.AttemptBegan = true, at
		if q.TriedSince.IsZero() {
			q.TriedSince = at
		}
		acts = append(acts, startAttempt{Seq: q.Head, Number: q.Attempt, BatchLimit: q.batchLimit(), AfterFailure: q.Failures > 0})
	}
	return q, append(acts, p.nextWake(&q, at, more))
}

// mustPassOn reports whether all pending notifications go to other sinks at at. A receiver that has
// failed for long enough but is due to be tried again is tried first: it may have been repaired
// while the process stood still. result says that an attempt has just failed.
func (p Policy) mustPassOn(q Queue, at time.Time, result bool) bool {
	if p.pass.isRoute {
		return true
	}
	since := p.fallbackAt(q)
	return !since.IsZero() && !at.Before(since) && (result || at.Before(q.Due))
}

// fallbackAt returns when the fallback of a receiver takes over; zero if it has none or does not
// fail.
func (p Policy) fallbackAt(q Queue) time.Time {
	since := q.FailingSince
	if since.IsZero() && q.Limited() {
		since = later(q.LimitedSince, q.LastSuccess)
	}
	if !p.pass.hasFallback || since.IsZero() {
		return time.Time{}
	}
	return since.Add(p.pass.fallbackAfter)
}

// passOnGivenUp passes on the notifications that acts would give up.
func (q *Queue) passOnGivenUp(acts []action) []action {
	kept := acts[:0]
	for _, act := range acts {
		switch act := act.(type) {
		case moveToDead:
			kept = append(kept, passToSinks{Seq: act.Seq, Attempts: act.Attempts, Reason: act.Reason})
		case emitHealth:
			if act.Event == pipeline.HealthDeadLetter {
				q.DeadLetterReported = false
				continue
			}
			kept = append(kept, act)
		default:
			kept = append(kept, act)
		}
	}
	return kept
}

// nextWake returns when q needs the next event; more says that clearHead left something.
func (p Policy) nextWake(q *Queue, at time.Time, more bool) scheduleWake {
	w := p.pendingWake(q, at, more)
	switch {
	case q.Windows.Open == 0:
		return w
	case q.mustDropWindows():
		w.At = at
	case q.Windows.DropReason == "" && (w.At.IsZero() || q.Windows.Due.Before(w.At)):
		w.At = q.Windows.Due
	}
	w.AtStart = true
	return w
}

// pendingWake is nextWake without the digests.
func (p Policy) pendingWake(q *Queue, at time.Time, more bool) scheduleWake {
	switch {
	case q.Pending() == 0:
		return scheduleWake{At: q.PruneAt}
	case q.InFlight:
		return scheduleWake{At: at.Add(inFlightCheckAfter), AtStart: true}
	case more:
		return scheduleWake{At: at, AtStart: true}
	case p.paused:
		return scheduleWake{At: at.Add(pausedCheckAfter), AtStart: true}
	default:
		due := q.Due
		if start := p.fallbackAt(*q); start.After(at) {
			due = earlier(due, start)
		}
		return scheduleWake{At: due, AtStart: true}
	}
}

// clearHead takes the notifications from the head of the queue that must not be tried: those
// whose subscription was cancelled, those below DropTo, and all if passOn says that they go to
// other sinks. more says that there are others.
func (q *Queue) clearHead(withdrawn func(uint64) bool, passOn bool) (acts []action, more bool) {
	for n := 0; q.Pending() > 0 && !q.InFlight; n++ {
		cancelled := withdrawn(q.Head)
		if !cancelled && !passOn && q.Head >= q.DropTo {
			break
		}
		if n == dropBatch {
			return acts, true
		}
		switch {
		case cancelled:
			acts = append(acts, dropWithdrawn{Seq: q.Head, Attempts: q.Tries})
			q.removeWithdrawnHead()
		case passOn:
			acts = append(acts, passToSinks{Seq: q.Head, Attempts: q.Tries, Reason: q.Reason})
			due, delay := q.Due, q.Delay
			q.removeHead()
			q.Due, q.Delay = due, delay
		default:
			acts = append(acts, q.giveUpHead(q.DropReason)...)
		}
	}
	return acts, false
}

// applyDelivered takes out the oldest notification, which was delivered. An expired receiver is not
// expired any more.
func (q *Queue) applyDelivered(at time.Time) []action {
	var acts []action
	since := q.FailingSince
	if q.Expired() {
		since = q.ExpiredSince
	}
	if q.Expired() || q.FailingReported {
		acts = append(acts, emitHealth{
			Seq: q.Head, Event: pipeline.HealthReceiverRecovered, Since: since, Count: q.Failures, Expired: q.Expired(),
		})
	}
	acts = append(acts, markDelivered{Seq: q.Head, Attempts: q.Tries + 1})
	q.removeHead()
	q.LastSuccess = at
	if q.Failures > 0 {
		q.PastReason = q.Reason
	}
	q.Failures, q.UncountedFailures, q.FailingSince, q.Reason = 0, 0, time.Time{}, ""
	q.FailingReported, q.DeadLetterReported, q.RetryRequested = false, false, false
	q.ExpiredSince, q.ExpiredReason, q.Windows.DropReason = time.Time{}, "", ""
	return acts
}

// applyFailed ends the attempt in flight without success. A canceled one does not count.
func (p Policy) applyFailed(q *Queue, ev attemptEnded, withdrawn func(uint64) bool) []action {
	o, retryNow := ev.Outcome, q.RetryRequested
	q.RetryRequested = false
	switch o.Class {
	case failure.ClassCanceled:
		q.Due, q.Delay = time.Time{}, 0
		q.undoAttempt()
		return nil
	case failure.ClassLimited:
		return p.applyLimited(q, ev, withdrawn)
	}
	q.PutOffTries = 0
	q.Tries++
	q.Failures++
	q.Reason, q.LastFailure = o.Reason, ev.At
	if q.FailingSince.IsZero() {
		q.FailingSince = ev.At
	}
	if o.Class == failure.ClassRefused {
		q.Refusals++
	}

	var acts []action
	switch {
	case q.Expired():
	case p.pass.hasFallback: // it never expires, because its notifications go elsewhere
		if (q.Failures >= failingAfter || o.ReportNow || o.Class == failure.ClassGone) && !q.FailingReported {
			q.FailingReported = true
			acts = append(acts, q.healthEvent(pipeline.HealthReceiverFailing, q.FailingSince, o.Reason))
		}
	case o.Class == failure.ClassGone:
		return q.expire(ev.At, "the receiver is gone: "+o.Reason)
	case q.Failures-q.UncountedFailures >= minFailures && ev.At.Sub(q.FailingSince) >= p.ExpireAfter:
		return q.expire(ev.At, fmt.Sprintf("nothing was delivered for %s: %s", p.ExpireAfter, o.Reason))
	case (q.Failures >= failingAfter || o.ReportNow) && !q.FailingReported:
		q.FailingReported = true
		acts = append(acts, q.healthEvent(pipeline.HealthReceiverFailing, q.FailingSince, o.Reason))
	}
	switch {
	case withdrawn(q.Head): // clearHead drops it
	case q.Expired():
		return append(acts, q.giveUpHead("the receiver is expired: "+o.Reason)...)
	case o.Class == failure.ClassPermanent, o.Class == failure.ClassGone:
		return append(acts, q.giveUpHead(o.Reason)...)
	case q.Refusals >= maxRefusals:
		return append(acts, q.giveUpHead(fmt.Sprintf("refused %d times: %s", q.Refusals, o.Reason))...)
	case q.Tries-q.UncountedTries >= minFailures && ev.At.Sub(q.TriedSince) >= p.DeadAfter:
		return append(acts, q.giveUpHead(fmt.Sprintf("not delivered within %s: %s", p.DeadAfter, o.Reason))...)
	}
	if retryNow {
		q.Due, q.Delay = time.Time{}, 0
		return acts
	}
	q.Delay = p.retryDelay(q, o, ev)
	q.Due, q.NotBefore = ev.At.Add(q.Delay), ev.At.Add(p.askedDelay(o, ev))
	return acts
}

// bringForward makes the next attempt at a failing receiver early, since there is a sign that it works again. It does
// not where the receiver said when to come, and for one with a fallback, whose notifications do not wait.
func (p Policy) bringForward(q *Queue, at time.Time) {
	if q.InFlight || q.Failures == 0 || q.PutOffTries > 0 || p.pass.hasFallback {
		return
	}
	q.Due = earlier(q.Due, later(at, later(q.NotBefore, q.LastFailure.Add(broughtForward))))
}

// applyLimited ends the attempt in flight, which the receiver put off because it was sent too much.
// That is no failure. But a limit that lets nothing through ends as failures do, so that the
// queue does not grow forever.
func (p Policy) applyLimited(q *Queue, ev attemptEnded, withdrawn func(uint64) bool) []action {
	q.PutOffTries++
	q.LimitedCount++
	q.LimitReason = ev.Outcome.Reason
	if !q.Limited() {
		q.LimitedSince = ev.At
	}
	since := q.FailingSince
	if since.IsZero() {
		since = later(q.LimitedSince, q.LastSuccess)
	}
	switch {
	case withdrawn(q.Head): // clearHead drops it
		return nil
	case !q.Expired() && !p.pass.hasFallback && q.Failures-q.UncountedFailures+q.PutOffTries >= minFailures && ev.At.Sub(since) >= p.ExpireAfter:
		return q.expire(ev.At, fmt.Sprintf("nothing was delivered for %s: %s", p.ExpireAfter, ev.Outcome.Reason))
	case q.Tries-q.UncountedTries+q.PutOffTries >= minFailures && ev.At.Sub(q.TriedSince) >= p.DeadAfter:
		return q.giveUpHead(fmt.Sprintf("not delivered within %s: %s", p.DeadAfter, ev.Outcome.Reason))
	}
	q.Delay = p.limitDelay(q, ev)
	q.Due = ev.At.Add(q.Delay)
	return nil
}

// reportDegraded reports, at most once in degradedInterval, that notifications are not delivered as
// configured.
func (q *Queue) reportDegraded(at time.Time, reason string) []action {
	if reason == "" || !q.DegradedReportedAt.IsZero() && at.Sub(q.DegradedReportedAt) < degradedInterval {
		return nil
	}
	q.DegradedReportedAt = at
	return []action{emitHealth{Seq: q.Head, Event: pipeline.HealthReceiverDegraded, Reason: reason}}
}

// expire gives up the receiver, all pending notifications and all digests.
func (q *Queue) expire(at time.Time, reason string) []action {
	q.ExpiredSince, q.ExpiredReason = at, reason
	q.DropTo, q.DropReason = q.Next, reason
	if q.Windows.Open > 0 {
		q.Windows.DropReason = reason
	}
	since := q.FailingSince
	if since.IsZero() {
		since = q.LimitedSince
	}
	return []action{q.healthEvent(pipeline.HealthReceiverExpired, since, reason)}
}

// giveUpHead gives up the oldest notification. The first one since the last success is reported.
func (q *Queue) giveUpHead(reason string) []action {
	var acts []action
	if !q.DeadLetterReported {
		q.DeadLetterReported = true
		acts = append(acts, q.healthEvent(pipeline.HealthDeadLetter, q.FailingSince, reason))
	}
	acts = append(acts, moveToDead{Seq: q.Head, Attempts: q.Tries, Reason: reason, Expired: q.Expired()})
	q.removeHead()
	return acts
}

func (q *Queue) healthEvent(event pipeline.HealthEvent, since time.Time, reason string) emitHealth {
	return emitHealth{Seq: q.Head, Event: event, Since: since, Count: q.Failures, Reason: reason}
}
