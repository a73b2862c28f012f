package sinks

import (
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Bounds that nobody had a reason to configure yet.
const (
	// maxRefusals is how often a notification is offered to a receiver that refuses it.
	maxRefusals = 3
	// maxRetryAfter caps how long a receiver can ask us to wait.
	maxRetryAfter = 24 * time.Hour
	// jitterShare is how far a delay is moved at most, as a share of it.
	jitterShare = 0.2
	// dropBatch bounds the dead letters of one transaction.
	dropBatch = 100
	// lookAfter is when an attempt in flight is looked after. It only matters if its result
	// never came.
	lookAfter = 2 * time.Minute
	// pruneEvery is how often delivered IDs are looked through.
	pruneEvery = 24 * time.Hour
)

// DefaultRetry is the schedule of retries: the delay after the first failed attempt,
// the second, and so on. The last one repeats.
func DefaultRetry() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 12 * time.Hour,
	}
}

// Defaults of a Policy.
const (
	DefaultDeadAfter = 72 * time.Hour
	DefaultRemember  = 7 * 24 * time.Hour
)

// Policy is the rules by which queues work. The zero value has the defaults.
type Policy struct {
	// Retry are the delays after failed attempts; the last repeats. Empty means
	// DefaultRetry. They are moved by up to a fifth, either way.
	Retry []time.Duration
	// DeadAfter is how long after its first attempt a notification is given up; 0 means
	// DefaultDeadAfter.
	DeadAfter time.Duration
	// Remember is for how long delivered IDs are remembered at least; 0 means
	// DefaultRemember. It has to be longer than the transport keeps notifications.
	Remember time.Duration
}

func (p Policy) withDefaults() Policy {
	if len(p.Retry) == 0 {
		p.Retry = DefaultRetry()
	}
	if p.DeadAfter == 0 {
		p.DeadAfter = DefaultDeadAfter
	}
	if p.Remember == 0 {
		p.Remember = DefaultRemember
	}
	return p
}

// Outcome says how an attempt ended.
type Outcome struct {
	Delivered bool `json:"delivered,omitempty"`
	// Class, After and Reason describe a failure: its error's class, the least delay that
	// the receiver asked for, and the reason in one line.
	Class  pipeline.Class `json:"class,omitempty"`
	After  time.Duration  `json:"after,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

// OutcomeOf says what err, the result of Sink.Deliver, means.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Outcome{Delivered: true}
	}
	class, after := pipeline.ClassOf(err)
	reason := err.Error()
	if pipeline.IsAmbiguous(err) {
		reason += " (it may have arrived)"
	}
	return Outcome{Class: class, After: after, Reason: oneLine(reason)}
}

// Apply returns what ev makes of q, and what is to be done, in this order. The last
// action is always a Wake, which replaces earlier ones; a result that is not that of
// the attempt in flight changes nothing and asks for nothing.
func (p Policy) Apply(q Queue, ev Event) (Queue, []Action) {
	p = p.withDefaults()
	at := ev.at()
	var acts []Action
	switch ev := ev.(type) {
	case Enqueued:
		q.Next++
	case Lost:
		q.InFlight = false
	case Resulted:
		if !q.InFlight || ev.Attempt != q.Attempt {
			return q, nil
		}
		q.InFlight = false
		acts = p.result(&q, ev)
	}
	acts = append(acts, q.drop()...)
	if !q.PruneAt.IsZero() && !at.Before(q.PruneAt) {
		acts = append(acts, Prune{Before: at.Add(-p.Remember)})
		q.PruneAt = at.Add(pruneEvery)
	}
	if q.Pending() > 0 && !q.InFlight && q.DropTo == 0 && !at.Before(q.Due) {
		q.Attempt++
		q.InFlight = true
		if q.First.IsZero() {
			q.First = at
		}
		acts = append(acts, Send{Seq: q.Head, Number: q.Attempt, Slow: q.Failures > 0})
	}
	return q, append(acts, q.wake(at))
}

// wake says when q is to be looked at next.
func (q *Queue) wake(at time.Time) Wake {
	switch {
	case q.Pending() == 0:
		return Wake{At: q.PruneAt}
	case q.InFlight:
		return Wake{At: at.Add(lookAfter), AtStart: true}
	case q.DropTo > 0:
		return Wake{At: at, AtStart: true}
	default:
		return Wake{At: q.Due, AtStart: true}
	}
}

// drop gives up some of what is pending of a receiver that is gone.
func (q *Queue) drop() []Action {
	var acts []Action
	for q.Head < q.DropTo && len(acts) < dropBatch {
		acts = append(acts, Dead{Seq: q.Head, Attempts: q.Tries, Reason: q.DropReason})
		q.advance()
	}
	if q.Head >= q.DropTo {
		q.DropTo, q.DropReason = 0, ""
	}
	return acts
}

func (p Policy) result(q *Queue, ev Resulted) []Action {
	o := ev.Outcome
	if o.Delivered {
		done := Done{Seq: q.Head}
		q.advance()
		q.Failures, q.FailingSince, q.Reason = 0, time.Time{}, ""
		if q.PruneAt.IsZero() {
			q.PruneAt = ev.At.Add(p.Remember)
		}
		return []Action{done}
	}
	if o.Class == pipeline.ClassCanceled {
		q.Due = ev.At
		if q.Tries == 0 {
			q.First = time.Time{}
		}
		return nil
	}

	q.Tries++
	q.Failures++
	q.Reason = o.Reason
	if q.FailingSince.IsZero() {
		q.FailingSince = ev.At
	}
	if o.Class == pipeline.ClassRefused {
		q.Refusals++
	}
	switch {
	case o.Class == pipeline.ClassPermanent:
		return q.giveUp(o.Reason)
	case o.Class == pipeline.ClassGone:
		q.DropTo, q.DropReason = q.Next, "the receiver is gone: "+o.Reason
		return nil
	case q.Refusals >= maxRefusals:
		return q.giveUp(fmt.Sprintf("refused %d times: %s", q.Refusals, o.Reason))
	case ev.At.Sub(q.First) >= p.DeadAfter:
		return q.giveUp(fmt.Sprintf("not delivered within %s: %s", p.DeadAfter, o.Reason))
	}
	q.Due = ev.At.Add(p.delay(q, o, ev))
	return nil
}

func (q *Queue) giveUp(reason string) []Action {
	dead := Dead{Seq: q.Head, Attempts: q.Tries, Reason: reason}
	q.advance()
	return []Action{dead}
}

// delay returns the time to the next attempt: that of the schedule, but the last
// attempt is not later than the moment at which the notification is given up, and none
// is earlier than the receiver asked for.
func (p Policy) delay(q *Queue, o Outcome, ev Resulted) time.Duration {
	d := p.Retry[min(q.Tries, len(p.Retry))-1]
	d += time.Duration((2*ev.Jitter - 1) * jitterShare * float64(d))
	d = min(d, q.First.Add(p.DeadAfter).Sub(ev.At))
	after := min(o.After, maxRetryAfter)
	after += time.Duration(ev.Jitter * jitterShare * float64(after))
	return max(d, after, 0)
}
