package sinks

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/vokter/vokter/pipeline"
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

// outcome says how an attempt ended.
type outcome struct {
	Delivered bool `json:"delivered,omitempty"`
	// Class, After and Reason describe a failure: its error's class, the least delay that
	// the receiver asked for, and the reason in one line.
	Class  pipeline.Class `json:"class,omitempty"`
	After  time.Duration  `json:"after,omitempty"`
	Reason string         `json:"reason,omitempty"`
	// Tell says that the failure is told at once.
	Tell bool `json:"tell,omitempty"`
}

// arrived is said behind the reason of an Ambiguous failure.
const arrived = " (it may have arrived)"

// outcomeOf says what err, the result of Sink.Deliver, means.
func outcomeOf(err error) outcome {
	if err == nil {
		return outcome{Delivered: true}
	}
	class, after := pipeline.ClassOf(err)
	reason := oneLine(err.Error())
	if pipeline.IsAmbiguous(err) {
		reason += arrived
	}
	return outcome{Class: class, After: after, Reason: reason, Tell: pipeline.TellsAtOnce(err)}
}

// maxReason bounds what is kept of an error, in bytes.
const maxReason = 400

// oneLine makes s fit for logs and records: one line of valid UTF-8 without control
// characters, cut at a rune.
func oneLine(s string) string {
	var b strings.Builder
	space := false
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			space = b.Len() > 0
			continue
		}
		if b.Len() >= maxReason {
			return b.String() + "..."
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}
