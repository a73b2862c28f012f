package delivery

import (
	"cmp"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Limits that cannot be configured.
const (
	// maxRefusals is how often a receiver may refuse a notification before it is given up.
	maxRefusals = 3
	// minFailures is how many attempts must have failed since the last standstill before
	// DeadAfter or ExpireAfter applies: a clock that jumped, or a process that was stopped, is
	// no failure of the receiver.
	minFailures = 3
	// standstillAfter is how late an attempt must begin or end for that to count as a standstill. A
	// longer delay before the attempt takes its place.
	standstillAfter = time.Hour
	// failingAfter is after how many failed attempts in a row receiver_failing is emitted.
	failingAfter = 3
	// degradedInterval is the least time between two receiver_degraded events.
	degradedInterval = 24 * time.Hour
	// maxRetryAfter caps how long a receiver can ask us to wait.
	maxRetryAfter = 24 * time.Hour
	// firstLimitDelay is the first wait for a receiver that was sent too much and does not say how
	// long to wait. It doubles with each attempt that is put off in a row, up to maxLimitDelay.
	// minLimitDelay is the least wait for a receiver that says how long.
	firstLimitDelay = 30 * time.Second
	minLimitDelay   = time.Second
	maxLimitDelay   = 5 * time.Minute
	// jitterShare is by how much jitter shortens a delay at most, or makes a wait longer that the receiver asked for.
	jitterShare = 0.2
	// sparseAfter is for how long a receiver must have failed so that the default schedule goes on with sparseDelay.
	sparseAfter = 24 * time.Hour
	sparseDelay = time.Hour
	// broughtForward is the least time from a failure to an attempt that is made early, since there is a sign that the
	// receiver works again.
	broughtForward = time.Minute
	// dropBatch bounds the notifications that one transaction gives up or drops.
	dropBatch = 100
	// inFlightCheckAfter is when a wake checks on an attempt in flight. It matters only if the result
	// was lost.
	inFlightCheckAfter = 2 * time.Minute
	// pausedCheckAfter is when a paused receiver is looked at again. A reload that ends the pause does not wait for it.
	pausedCheckAfter = time.Hour
	// pruneInterval is how often old records are removed; pruneMoreAfter is when the rest of a large
	// prune follows.
	pruneInterval  = 24 * time.Hour
	pruneMoreAfter = time.Minute
	// keepResults is how long the times of the last success and failure are kept.
	keepResults = 365 * 24 * time.Hour
)

// defaultRetry is the schedule of retries: the delay after the first failed attempt,
// the second, and so on. The last one repeats, until sparseAfter.
func defaultRetry() []time.Duration {
	return []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute, 15 * time.Minute}
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
	// seconds, 5 and 15 minutes, and an hour once the receiver has failed for a day. Jitter shortens
	// each by up to a fifth.
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

	// sparse says that Retry is the default.
	sparse bool
	// pass says when pending notifications are passed on to other sinks.
	pass passPolicy
	// paused says that no attempt begins.
	paused bool
}

// passPolicy says whether a receiver passes its notifications on to other sinks.
type passPolicy struct {
	// isRoute says that it is a route, which delivers nothing itself.
	isRoute bool
	// hasFallback says that it has a fallback, which is used when it has failed for fallbackAfter.
	hasFallback   bool
	fallbackAfter time.Duration
}

func (p Policy) withDefaults() Policy {
	if len(p.Retry) == 0 {
		p.Retry, p.sparse = defaultRetry(), true
	}
	p.DeadAfter = cmp.Or(p.DeadAfter, defaultDeadAfter)
	p.ExpireAfter = cmp.Or(p.ExpireAfter, defaultExpireAfter)
	p.Remember = cmp.Or(p.Remember, defaultRemember)
	return p
}

// longestDelay returns the longest delay between two attempts that p can lead to.
func (p Policy) longestDelay() time.Duration {
	d := max(slices.Max(p.Retry), maxRetryAfter, sparseDelay)
	return d + time.Duration(jitterShare*float64(d))
}

// retryDelay returns the time to the next attempt. It is that of the schedule, but ends when
// DeadAfter ends, so that a last attempt is made, and is never shorter than the receiver asked
// for.
//
// A receiver with a fallback is tried again at least every passPolicy.fallbackAfter, so that it is used again
// soon after it was repaired. Its notifications do not wait meanwhile, so all its failures count.
func (p Policy) retryDelay(q *Queue, o attemptOutcome, ev attemptEnded) time.Duration {
	tries := q.Tries
	if p.pass.hasFallback {
		tries = q.Failures
	}
	d := p.Retry[min(tries, len(p.Retry))-1]
	if p.sparse && tries > len(p.Retry) && ev.At.Sub(q.FailingSince) >= sparseAfter {
		d = sparseDelay
	}
	if p.pass.hasFallback {
		d = min(d, p.pass.fallbackAfter)
	}
	d -= time.Duration(ev.Jitter * jitterShare * float64(d))
	if left := q.TriedSince.Add(p.DeadAfter).Sub(ev.At); left > 0 {
		d = min(d, left)
	}
	return max(d, p.askedDelay(o, ev), 0)
}

// askedDelay returns how long the receiver asked to wait; 0 if it did not.
func (p Policy) askedDelay(o attemptOutcome, ev attemptEnded) time.Duration {
	after := min(o.After, maxRetryAfter)
	return after + time.Duration(ev.Jitter*jitterShare*float64(after))
}

// limitDelay returns the time to the next attempt at a receiver that put off the last
// q.PutOffTries ones: what it asked for, or an exponential back-off.
func (p Policy) limitDelay(q *Queue, ev attemptEnded) time.Duration {
	d := min(max(ev.Outcome.After, minLimitDelay), maxRetryAfter)
	if ev.Outcome.After == 0 {
		d = min(firstLimitDelay<<min(q.PutOffTries-1, 10), maxLimitDelay)
	}
	return d + time.Duration(ev.Jitter*jitterShare*float64(d))
}
