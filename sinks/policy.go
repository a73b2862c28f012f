package sinks

import (
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// Limits that cannot be configured.
const (
	// maxRefusals is how often a receiver may refuse a notification before it is given up.
	maxRefusals = 3
	// minFailures is how many attempts must have failed since the last standstill before
	// DeadAfter or ExpireAfter applies: a clock that jumped, or a process that was stopped, is
	// no failure of the receiver.
	minFailures = 3
	// standstill is how late an attempt must begin or end for that to count as a standstill. A
	// longer delay before the attempt takes its place.
	standstill = time.Hour
	// failingAfter is after how many failed attempts in a row receiver_failing is emitted.
	failingAfter = 3
	// degradedAgain is the least time between two receiver_degraded events.
	degradedAgain = 24 * time.Hour
	// maxRetryAfter caps how long a receiver can ask us to wait.
	maxRetryAfter = 24 * time.Hour
	// limitedFor is the first wait for a receiver that was sent too much and does not say how
	// long to wait. It doubles with each attempt that is put off in a row, up to maxLimited.
	// minLimited is the least wait for a receiver that says how long.
	limitedFor = 30 * time.Second
	minLimited = time.Second
	maxLimited = 5 * time.Minute
	// jitterShare is the largest change of a delay by jitter, as a share of the delay.
	jitterShare = 0.2
	// dropBatch bounds the notifications that one transaction gives up or drops.
	dropBatch = 100
	// lookAfter is when a wake checks on an attempt in flight. It matters only if the result
	// was lost.
	lookAfter = 2 * time.Minute
	// pruneEvery is how often old records are removed; pruneAgain is when the rest of a large
	// prune follows.
	pruneEvery = 24 * time.Hour
	pruneAgain = time.Minute
	// keepPast is how long the times of the last success and failure are kept.
	keepPast = 365 * 24 * time.Hour
)

// defaultRetry is the schedule of retries: the delay after the first failed attempt,
// the second, and so on. The last one repeats.
func defaultRetry() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 12 * time.Hour,
	}
}

// Defaults of a Policy.
const (
	defaultDeadAfter   = 72 * time.Hour
	defaultExpireAfter = 5 * 24 * time.Hour
	defaultRemember    = 7 * 24 * time.Hour
)

// Policy says when attempts are repeated and when notifications are given up. The zero value
// has the defaults.
type Policy struct {
	// Retry are the delays after failed attempts; the last one repeats. Empty means 5 and 30
	// seconds, 5 and 30 minutes, 2, 5, 10 and 12 hours. Jitter changes each by up to a fifth.
	Retry []time.Duration
	// DeadAfter is how long after its first attempt a notification is given up, if at least
	// three attempts failed or were put off; 0 means 72 hours. If an attempt was late by an
	// hour, and by more than the delay before it, then the attempts before it do not count.
	DeadAfter time.Duration
	// ExpireAfter is how long after the first failure since its last success a receiver
	// expires, if at least three attempts failed or were put off, counted as for DeadAfter;
	// 0 means 5 days. A receiver that says that it is gone expires at once.
	ExpireAfter time.Duration
	// Remember is the least time for which the IDs of notifications that were delivered, given
	// up or dropped, and cancelled subscriptions, are remembered; 0 means 7 days. It must be
	// longer than the transport keeps notifications.
	Remember time.Duration
	// Receivers says how sinks get their notifications, by the name of the sink.
	Receivers map[string]pipeline.Receiving

	// passes says when pending notifications are passed on to other sinks.
	passes passing
}

// passing says whether a receiver passes its notifications on to other sinks.
type passing struct {
	// always says that it is a route, which delivers nothing itself.
	always bool
	// fallback says that it has a fallback, which is used when it has failed for after.
	fallback bool
	after    time.Duration
}

func (p Policy) withDefaults() Policy {
	if len(p.Retry) == 0 {
		p.Retry = defaultRetry()
	}
	if p.DeadAfter == 0 {
		p.DeadAfter = defaultDeadAfter
	}
	if p.ExpireAfter == 0 {
		p.ExpireAfter = defaultExpireAfter
	}
	if p.Remember == 0 {
		p.Remember = defaultRemember
	}
	return p
}

// longest returns the longest delay that p can lead to.
func (p Policy) longest() time.Duration {
	d := max(slices.Max(p.Retry), maxRetryAfter)
	return d + time.Duration(jitterShare*float64(d))
}

// delay returns the time to the next attempt. It is that of the schedule, but ends when
// DeadAfter ends, so that a last attempt is made, and is never shorter than the receiver asked
// for.
//
// A receiver with a fallback is tried again at least every passing.after, so that it is used again
// soon after it was repaired. Its notifications do not wait meanwhile, so all its failures count.
func (p Policy) delay(q *Queue, o outcome, ev resulted) time.Duration {
	tries := q.Tries
	if p.passes.fallback {
		tries = q.Failures
	}
	d := p.Retry[min(tries, len(p.Retry))-1]
	if p.passes.fallback {
		d = min(d, p.passes.after)
	}
	d += time.Duration((2*ev.Jitter - 1) * jitterShare * float64(d))
	if left := q.First.Add(p.DeadAfter).Sub(ev.At); left > 0 {
		d = min(d, left)
	}
	after := min(o.After, maxRetryAfter)
	after += time.Duration(ev.Jitter * jitterShare * float64(after))
	return max(d, after, 0)
}

// limitDelay returns the time to the next attempt at a receiver that put off the last
// q.PutOff ones: what it asked for, or an exponential back-off.
func (p Policy) limitDelay(q *Queue, ev resulted) time.Duration {
	d := min(max(ev.Outcome.After, minLimited), maxRetryAfter)
	if ev.Outcome.After == 0 {
		d = min(limitedFor<<min(q.PutOff-1, 10), maxLimited)
	}
	return d + time.Duration(ev.Jitter*jitterShare*float64(d))
}

// apply returns the Queue after ev, and the actions that follow, in order. withdrawn reports
// whether the subscription of a pending notification was cancelled; nil means that none was.
// The last action is always a wake, which replaces earlier ones. A result of another attempt
// than the one in flight changes nothing.
func (p Policy) apply(q Queue, ev event, withdrawn func(seq uint64) bool) (Queue, []action) {
	p = p.withDefaults()
	if withdrawn == nil {
		withdrawn = func(uint64) bool { return false }
	}
	at := ev.at()
	if ev, ok := ev.(resulted); ok && (!q.InFlight || ev.Attempt != q.Attempt) {
		return q, nil
	}
	q.clamp(at, p)
	var acts []action
	switch ev := ev.(type) {
	case enqueued:
		q.enqueue(at)
	case retryAsked:
		q.retryNow()
	case lost:
		q.lose()
	case remembered:
		q.Markers += ev.Markers
		q.remember(at, p)
	case pruned:
		q.pruned(ev)
	case resulted:
		q.heldUntil(earlier(ev.Ready, at))
		q.noticeStandstill(at)
		began := q.Began
		q.InFlight, q.Began = false, time.Time{}
		acts = q.degraded(at, ev.Degraded)
		for range ev.Before {
			acts = append(acts, q.delivered(at)...)
			q.First = began
		}
		if q.Took = ev.Before; ev.Outcome.Delivered {
			q.Took++
			acts = append(acts, q.delivered(at)...)
		} else {
			acts = append(acts, p.failed(&q, ev, withdrawn)...)
		}
	}
	_, result := ev.(resulted)
	taken, more := q.clear(withdrawn, p.passesOn(q, at, result))
	acts = append(acts, taken...)
	if p.passes.fallback {
		acts = q.rescue(acts)
	}
	q.clearLimit()
	if len(acts) > 0 {
		q.remember(at, p)
	}
	if !q.PruneAt.IsZero() && !at.Before(q.PruneAt) {
		acts = append(acts, prune{Before: at.Add(-p.Remember)})
		q.PruneAt = at.Add(pruneEvery)
	}
	if q.Pending() > 0 && !q.InFlight && !more && !at.Before(q.Due) {
		q.noticeStandstill(at)
		q.Attempt++
		q.InFlight, q.Began = true, at
		if q.First.IsZero() {
			q.First = at
		}
		acts = append(acts, send{Seq: q.Head, Number: q.Attempt, Most: q.most(), Slow: q.Failures > 0})
	}
	return q, append(acts, p.wake(&q, at, more))
}

// passesOn reports whether all pending notifications go to other sinks at at. A receiver that has
// failed for long enough but is due to be tried again is tried first: it may have been repaired
// while the process stood still. result says that an attempt has just failed.
func (p Policy) passesOn(q Queue, at time.Time, result bool) bool {
	if p.passes.always {
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
	if !p.passes.fallback || since.IsZero() {
		return time.Time{}
	}
	return since.Add(p.passes.after)
}

// rescue passes on the notifications that acts would give up.
func (q *Queue) rescue(acts []action) []action {
	kept := acts[:0]
	for _, act := range acts {
		switch act := act.(type) {
		case dead:
			kept = append(kept, pass{Seq: act.Seq, Attempts: act.Attempts, Reason: act.Reason})
		case tell:
			if act.Event == pipeline.HealthDeadLetter {
				q.ToldDead = false
				continue
			}
			kept = append(kept, act)
		default:
			kept = append(kept, act)
		}
	}
	return kept
}

// wake returns when q needs the next event; more says that clear left something.
func (p Policy) wake(q *Queue, at time.Time, more bool) wake {
	w := p.wakePending(q, at, more)
	switch {
	case q.Windows.Open == 0:
		return w
	case q.endsWindows():
		w.At = at
	case q.Windows.Over == "" && (w.At.IsZero() || q.Windows.Due.Before(w.At)):
		w.At = q.Windows.Due
	}
	w.AtStart = true
	return w
}

// wakePending is wake without the digests.
func (p Policy) wakePending(q *Queue, at time.Time, more bool) wake {
	switch {
	case q.Pending() == 0:
		return wake{At: q.PruneAt}
	case q.InFlight:
		return wake{At: at.Add(lookAfter), AtStart: true}
	case more:
		return wake{At: at, AtStart: true}
	default:
		due := q.Due
		if over := p.fallbackAt(*q); over.After(at) {
			due = earlier(due, over)
		}
		return wake{At: due, AtStart: true}
	}
}

// clear takes the notifications from the head of the queue that must not be tried: those
// whose subscription was cancelled, those below DropTo, and all if passOn says that they go to
// other sinks. more says that there are others.
func (q *Queue) clear(withdrawn func(uint64) bool, passOn bool) (acts []action, more bool) {
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
			acts = append(acts, drop{Seq: q.Head, Attempts: q.Tries})
			q.skip()
		case passOn:
			acts = append(acts, pass{Seq: q.Head, Attempts: q.Tries, Reason: q.Reason})
			due, delay := q.Due, q.Delay
			q.advance()
			q.Due, q.Delay = due, delay
		default:
			acts = append(acts, q.giveUp(q.DropReason)...)
		}
	}
	return acts, false
}

// delivered takes out the oldest notification, which was delivered. An expired receiver is not
// expired any more.
func (q *Queue) delivered(at time.Time) []action {
	var acts []action
	since := q.FailingSince
	if q.Expired() {
		since = q.ExpiredSince
	}
	if q.Expired() || q.ToldFailing {
		acts = append(acts, tell{
			Seq: q.Head, Event: pipeline.HealthReceiverRecovered, Since: since, Count: q.Failures, Expired: q.Expired(),
		})
	}
	acts = append(acts, done{Seq: q.Head, Attempts: q.Tries + 1})
	q.advance()
	q.LastSuccess = at
	if q.Failures > 0 {
		q.PastReason = q.Reason
	}
	q.Failures, q.OldFailures, q.FailingSince, q.Reason = 0, 0, time.Time{}, ""
	q.ToldFailing, q.ToldDead, q.Again = false, false, false
	q.ExpiredSince, q.ExpiredReason, q.Windows.Over = time.Time{}, "", ""
	return acts
}

// failed ends the attempt in flight without success.
func (p Policy) failed(q *Queue, ev resulted, withdrawn func(uint64) bool) []action {
	o, again := ev.Outcome, q.Again
	q.Again = false
	switch o.Class {
	case failure.ClassCanceled:
		q.Due, q.Delay = time.Time{}, 0
		q.lose()
		return nil
	case failure.ClassLimited:
		return p.limited(q, ev, withdrawn)
	}
	q.PutOff = 0
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
	case p.passes.fallback: // it never expires, because its notifications go elsewhere
		if (q.Failures >= failingAfter || o.Tell || o.Class == failure.ClassGone) && !q.ToldFailing {
			q.ToldFailing = true
			acts = append(acts, q.tell(pipeline.HealthReceiverFailing, q.FailingSince, o.Reason))
		}
	case o.Class == failure.ClassGone:
		return q.expire(ev.At, "the receiver is gone: "+o.Reason)
	case q.Failures-q.OldFailures >= minFailures && ev.At.Sub(q.FailingSince) >= p.ExpireAfter:
		return q.expire(ev.At, fmt.Sprintf("nothing was delivered for %s: %s", p.ExpireAfter, o.Reason))
	case (q.Failures >= failingAfter || o.Tell) && !q.ToldFailing:
		q.ToldFailing = true
		acts = append(acts, q.tell(pipeline.HealthReceiverFailing, q.FailingSince, o.Reason))
	}
	switch {
	case withdrawn(q.Head): // clear drops it
	case q.Expired():
		return append(acts, q.giveUp("the receiver is expired: "+o.Reason)...)
	case o.Class == failure.ClassPermanent, o.Class == failure.ClassGone:
		return append(acts, q.giveUp(o.Reason)...)
	case q.Refusals >= maxRefusals:
		return append(acts, q.giveUp(fmt.Sprintf("refused %d times: %s", q.Refusals, o.Reason))...)
	case q.Tries-q.OldTries >= minFailures && ev.At.Sub(q.First) >= p.DeadAfter:
		return append(acts, q.giveUp(fmt.Sprintf("not delivered within %s: %s", p.DeadAfter, o.Reason))...)
	}
	if again {
		q.Due, q.Delay = time.Time{}, 0
		return acts
	}
	q.Delay = p.delay(q, o, ev)
	q.Due = ev.At.Add(q.Delay)
	return acts
}

// limited ends the attempt in flight, which the receiver put off because it was sent too much.
// That is no failure. But a limit that lets nothing through ends as failures do, so that the
// queue does not grow forever.
func (p Policy) limited(q *Queue, ev resulted, withdrawn func(uint64) bool) []action {
	q.PutOff++
	q.Limits++
	q.LimitReason = ev.Outcome.Reason
	if !q.Limited() {
		q.LimitedSince = ev.At
	}
	since := q.FailingSince
	if since.IsZero() {
		since = later(q.LimitedSince, q.LastSuccess)
	}
	switch {
	case withdrawn(q.Head): // clear drops it
		return nil
	case !q.Expired() && !p.passes.fallback && q.Failures-q.OldFailures+q.PutOff >= minFailures && ev.At.Sub(since) >= p.ExpireAfter:
		return q.expire(ev.At, fmt.Sprintf("nothing was delivered for %s: %s", p.ExpireAfter, ev.Outcome.Reason))
	case q.Tries-q.OldTries+q.PutOff >= minFailures && ev.At.Sub(q.First) >= p.DeadAfter:
		return q.giveUp(fmt.Sprintf("not delivered within %s: %s", p.DeadAfter, ev.Outcome.Reason))
	}
	q.Delay = p.limitDelay(q, ev)
	q.Due = ev.At.Add(q.Delay)
	return nil
}

// degraded reports, at most once in degradedAgain, that notifications are not delivered as
// configured.
func (q *Queue) degraded(at time.Time, reason string) []action {
	if reason == "" || !q.ToldDegraded.IsZero() && at.Sub(q.ToldDegraded) < degradedAgain {
		return nil
	}
	q.ToldDegraded = at
	return []action{tell{Seq: q.Head, Event: pipeline.HealthReceiverDegraded, Reason: reason}}
}

// expire gives up the receiver, all pending notifications and all digests.
func (q *Queue) expire(at time.Time, reason string) []action {
	q.ExpiredSince, q.ExpiredReason = at, reason
	q.DropTo, q.DropReason = q.Next, reason
	if q.Windows.Open > 0 {
		q.Windows.Over = reason
	}
	since := q.FailingSince
	if since.IsZero() {
		since = q.LimitedSince
	}
	return []action{q.tell(pipeline.HealthReceiverExpired, since, reason)}
}

// giveUp gives up the oldest notification. The first one since the last success is reported.
func (q *Queue) giveUp(reason string) []action {
	var acts []action
	if !q.ToldDead {
		q.ToldDead = true
		acts = append(acts, q.tell(pipeline.HealthDeadLetter, q.FailingSince, reason))
	}
	acts = append(acts, dead{Seq: q.Head, Attempts: q.Tries, Reason: reason, Expired: q.Expired()})
	q.advance()
	return acts
}

func (q *Queue) tell(event pipeline.HealthEvent, since time.Time, reason string) tell {
	return tell{Seq: q.Head, Event: event, Since: since, Count: q.Failures, Reason: reason}
}
