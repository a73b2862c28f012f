package sinks

import (
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// Bounds that nobody had a reason to configure yet.
const (
	// maxRefusals is how often a notification is offered to a receiver that refuses it.
	maxRefusals = 3
	// minFailures is how many attempts fail at least before time alone gives anything up,
	// since the last standstill: a clock that jumped, or a process that stood still, is no
	// failure of the receiver.
	minFailures = 3
	// standstill is how late an attempt begins or ends at least for that to be one, where it
	// waited for no longer.
	standstill = time.Hour
	// failingAfter is after how many failed attempts in a row a receiver is said to fail.
	failingAfter = 3
	// degradedAgain is when it is told again that notifications are not delivered as was
	// wanted.
	degradedAgain = 24 * time.Hour
	// maxRetryAfter caps how long a receiver can ask us to wait.
	maxRetryAfter = 24 * time.Hour
	// limitedFor is the first wait for a receiver that limits us without saying for how long. It
	// doubles with each attempt that the receiver puts off in a row, up to maxLimited. minLimited
	// is the least wait for one that says how long.
	limitedFor = 30 * time.Second
	minLimited = time.Second
	maxLimited = 5 * time.Minute
	// jitterShare is how far a delay is moved at most, as a share of it.
	jitterShare = 0.2
	// dropBatch bounds the notifications that one transaction gives up or drops.
	dropBatch = 100
	// lookAfter is when an attempt in flight is looked after. It only matters if its result
	// never came.
	lookAfter = 2 * time.Minute
	// pruneEvery is how often what is remembered is looked through; pruneAgain is when the
	// rest of a large prune follows.
	pruneEvery = 24 * time.Hour
	pruneAgain = time.Minute
	// keepPast is for how long it is known when a receiver took something last, or failed.
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

// Policy is the rules by which queues work. The zero value has the defaults.
type Policy struct {
	// Retry are the delays after failed attempts; the last repeats. Empty means 5 and 30
	// seconds, 5 and 30 minutes, 2, 5, 10 and 12 hours. They are moved by up to a fifth,
	// either way.
	Retry []time.Duration
	// DeadAfter is how long after its first attempt a notification is given up, when at
	// least three attempts failed or were put off by a limit; 0 means 72 hours. Attempts from before one that was an
	// hour late, or the delay before it if that was longer, do not count.
	DeadAfter time.Duration
	// ExpireAfter is how long after the first failure since its last success a receiver is
	// expired, when at least three attempts failed or were put off, counted likewise; 0 means
	// 5 days. One that says that it is gone is expired at once.
	ExpireAfter time.Duration
	// Remember is for how long the IDs of notifications that were delivered, given up or
	// dropped, and cancelled subscriptions, are remembered at least; 0 means 7 days. It has
	// to be longer than the transport keeps notifications.
	Remember time.Duration
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

// longest returns the longest delay that p can give.
func (p Policy) longest() time.Duration {
	d := max(slices.Max(p.Retry), maxRetryAfter)
	return d + time.Duration(jitterShare*float64(d))
}

// delay returns the time to the next attempt: that of the schedule, but one attempt is
// made when the notification may be given up, and none is earlier than the receiver asked
// for.
func (p Policy) delay(q *Queue, o outcome, ev resulted) time.Duration {
	d := p.Retry[min(q.Tries, len(p.Retry))-1]
	d += time.Duration((2*ev.Jitter - 1) * jitterShare * float64(d))
	if left := q.First.Add(p.DeadAfter).Sub(ev.At); left > 0 {
		d = min(d, left)
	}
	after := min(o.After, maxRetryAfter)
	after += time.Duration(ev.Jitter * jitterShare * float64(after))
	return max(d, after, 0)
}

// limitDelay returns the time to the next attempt at a receiver that put off the last ones,
// q.PutOff in a row: what it asked for, and ever longer where it says nothing.
func (p Policy) limitDelay(q *Queue, ev resulted) time.Duration {
	d := min(max(ev.Outcome.After, minLimited), maxRetryAfter)
	if ev.Outcome.After == 0 {
		d = min(limitedFor<<min(q.PutOff-1, 10), maxLimited)
	}
	return d + time.Duration(ev.Jitter*jitterShare*float64(d))
}

// apply returns what ev makes of q, and what is to be done, in this order. withdrawn
// reports whether the subscription of a pending notification was cancelled; nil says
// that none was. The last action is always a wake, which replaces earlier ones; a result
// that is not that of the attempt in flight changes nothing and asks for nothing.
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
	case hurried:
		q.hurry()
	case lost:
		q.lose()
	case remembered:
		q.Markers += ev.Markers
		q.remember(at, p)
	case pruned:
		q.pruned(ev)
	case resulted:
		q.held(earlier(ev.Ready, at))
		q.notice(at)
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
	taken, more := q.clear(withdrawn)
	acts = append(acts, taken...)
	q.unlimited()
	if len(acts) > 0 {
		q.remember(at, p)
	}
	if !q.PruneAt.IsZero() && !at.Before(q.PruneAt) {
		acts = append(acts, prune{Before: at.Add(-p.Remember)})
		q.PruneAt = at.Add(pruneEvery)
	}
	if q.Pending() > 0 && !q.InFlight && !more && !at.Before(q.Due) {
		q.notice(at)
		q.Attempt++
		q.InFlight, q.Began = true, at
		if q.First.IsZero() {
			q.First = at
		}
		acts = append(acts, send{Seq: q.Head, Number: q.Attempt, Most: q.most(), Slow: q.Failures > 0})
	}
	return q, append(acts, q.wake(at, more))
}

// wake says when q is to be looked at next; more says that there is more to clear.
func (q *Queue) wake(at time.Time, more bool) wake {
	w := q.wakePending(at, more)
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

// wakePending says when to look at what is pending, or remembered.
func (q *Queue) wakePending(at time.Time, more bool) wake {
	switch {
	case q.Pending() == 0:
		return wake{At: q.PruneAt}
	case q.InFlight:
		return wake{At: at.Add(lookAfter), AtStart: true}
	case more:
		return wake{At: at, AtStart: true}
	default:
		return wake{At: q.Due, AtStart: true}
	}
}

// clear takes what is not to be tried from the head of the queue: what was withdrawn, and
// what is to be given up. More says that it did not come to the end of that.
func (q *Queue) clear(withdrawn func(uint64) bool) (acts []action, more bool) {
	for n := 0; q.Pending() > 0 && !q.InFlight; n++ {
		cancelled := withdrawn(q.Head)
		if !cancelled && q.Head >= q.DropTo {
			break
		}
		if n == dropBatch {
			return acts, true
		}
		if cancelled {
			acts = append(acts, drop{Seq: q.Head, Attempts: q.Tries})
			q.skip()
		} else {
			acts = append(acts, q.giveUp(q.DropReason)...)
		}
	}
	return acts, false
}

// delivered ends the attempt in flight with success, which opens a receiver that was
// expired.
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
	case o.Class == failure.ClassPermanent:
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

// limited ends the attempt in flight, which the receiver put off since it was sent too much.
// That is no failure, but a limit that lets nothing through ends as failures do: what waits
// must not grow for ever.
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
	case !q.Expired() && q.Failures-q.OldFailures+q.PutOff >= minFailures && ev.At.Sub(since) >= p.ExpireAfter:
		return q.expire(ev.At, fmt.Sprintf("nothing was delivered for %s: %s", p.ExpireAfter, ev.Outcome.Reason))
	case q.Tries-q.OldTries+q.PutOff >= minFailures && ev.At.Sub(q.First) >= p.DeadAfter:
		return q.giveUp(fmt.Sprintf("not delivered within %s: %s", p.DeadAfter, ev.Outcome.Reason))
	}
	q.Delay = p.limitDelay(q, ev)
	q.Due = ev.At.Add(q.Delay)
	return nil
}

// degraded tells, once in a while, that notifications are not delivered as was wanted.
func (q *Queue) degraded(at time.Time, reason string) []action {
	if reason == "" || !q.ToldDegraded.IsZero() && at.Sub(q.ToldDegraded) < degradedAgain {
		return nil
	}
	q.ToldDegraded = at
	return []action{tell{Seq: q.Head, Event: pipeline.HealthReceiverDegraded, Reason: reason}}
}

// expire gives up the receiver, and with it all that is pending or in digests.
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

// giveUp gives up the oldest notification. The first since the last success is told.
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
