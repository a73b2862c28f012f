package sinks

import (
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Queue is what delivery remembers of one receiver, beside the pending notifications,
// which are numbered in the order of their arrival. The zero Queue is that of a
// receiver never heard of.
type Queue struct {
	// Head is the number of the oldest pending notification, Next the number that the
	// next one gets. Nothing is pending where they are equal.
	Head uint64 `json:"head"`
	Next uint64 `json:"next"`
	// Attempt is the number of the last attempt that was begun; InFlight says that its
	// result is not known yet.
	Attempt  uint64 `json:"attempt"`
	InFlight bool   `json:"in_flight,omitempty"`
	// Began is when the attempt in flight began, or one that was lost and is to be made again.
	Began time.Time `json:"began,omitzero"`
	// Took is how many notifications the last attempt delivered.
	Took int `json:"took,omitempty"`
	// Due is when the next attempt may begin; zero means at once. Delay is how far from
	// its last failure that was, at most.
	Due   time.Time     `json:"due,omitzero"`
	Delay time.Duration `json:"delay,omitempty"`
	// Since is when the first notification came for the receiver since it was last forgotten:
	// attempts are numbered anew then.
	Since time.Time `json:"since,omitzero"`

	// First is when the first attempt of the oldest notification began. Tries counts its
	// failed attempts, Refusals those of them in which the receiver refused it.
	First    time.Time `json:"first,omitzero"`
	Tries    int       `json:"tries,omitempty"`
	Refusals int       `json:"refusals,omitempty"`
	// OldTries are those of the Tries, OldFailures those of the Failures, from before the last
	// standstill. Time alone gives nothing up for them.
	OldTries    int `json:"old_tries,omitempty"`
	OldFailures int `json:"old_failures,omitempty"`

	// Failures counts the failed attempts since the receiver's last success, FailingSince
	// is the first of them, Reason says why the last one failed.
	Failures     int       `json:"failures,omitempty"`
	FailingSince time.Time `json:"failing_since,omitzero"`
	Reason       string    `json:"reason,omitempty"`
	// PutOff counts the attempts of the oldest notification that the receiver put off in a row,
	// since it was sent too much. They are no failures. LimitedSince is since when the receiver
	// puts attempts off, until nothing waits any more; Limits counts them, and LimitReason is
	// what the receiver said last.
	PutOff       int       `json:"put_off,omitempty"`
	LimitedSince time.Time `json:"limited_since,omitzero"`
	Limits       int       `json:"limits,omitempty"`
	LimitReason  string    `json:"limit_reason,omitempty"`
	// Again says that the attempt in flight is followed by another one at once if it fails:
	// somebody asked for that while it was in flight.
	Again bool `json:"again,omitempty"`
	// LastSuccess is when something was delivered last, LastFailure when an attempt failed
	// last, PastReason why, where something was delivered since. They are kept for keepPast
	// beyond all else.
	LastSuccess time.Time `json:"last_success,omitzero"`
	LastFailure time.Time `json:"last_failure,omitzero"`
	PastReason  string    `json:"past_reason,omitempty"`
	// ToldFailing and ToldDead say which events were told since the last success: that
	// the receiver fails, that something was given up.
	ToldFailing bool `json:"told_failing,omitempty"`
	ToldDead    bool `json:"told_dead,omitempty"`
	// ToldDegraded is when it was last told that notifications are delivered other than was
	// wanted.
	ToldDegraded time.Time `json:"told_degraded,omitzero"`

	// ExpiredSince is since when the receiver is expired, zero while it is open;
	// ExpiredReason says why. What comes for an expired receiver is tried once.
	ExpiredSince  time.Time `json:"expired_since,omitzero"`
	ExpiredReason string    `json:"expired_reason,omitempty"`

	// DropTo and DropReason say that the pending notifications numbered below DropTo are to
	// be given up.
	DropTo     uint64 `json:"drop_to,omitempty"`
	DropReason string `json:"drop_reason,omitempty"`

	// Markers counts the cancelled subscriptions that are remembered.
	Markers int `json:"markers,omitempty"`
	// PruneAt is when what is remembered is next looked through for what to forget; zero
	// means that nothing is remembered.
	PruneAt time.Time `json:"prune_at,omitzero"`

	// Windows are the digests that are being collected.
	Windows Windows `json:"windows,omitzero"`
}

// Pending returns how many notifications are pending.
func (q Queue) Pending() int { return int(q.Next - q.Head) }

// Limited reports whether the receiver puts attempts off since it was sent too much.
func (q Queue) Limited() bool { return !q.LimitedSince.IsZero() }

// Expired reports whether the receiver is expired.
func (q Queue) Expired() bool { return !q.ExpiredSince.IsZero() }

// endsWindows reports whether the digests are to end now, and to be given up: the receiver is
// expired, and what was pending before them has come to its end.
func (q Queue) endsWindows() bool {
	return q.Windows.Over != "" && (q.Pending() == 0 || q.DropTo == q.Next)
}

// blank reports whether q says no more than the zero Queue would.
func (q Queue) blank() bool {
	return q.Pending() == 0 && q.Failures == 0 && q.PruneAt.IsZero() && q.Windows.Open == 0
}

// most returns how many notifications an attempt may have: one after a failure, and not far
// more than the last one delivered in its time, since each is read and held in memory.
func (q Queue) most() int {
	if q.Failures > 0 {
		return 1
	}
	return 2*q.Took + 1
}

// advance takes the oldest notification out of the queue.
func (q *Queue) advance() {
	q.Head++
	q.Began, q.Due, q.Delay = time.Time{}, time.Time{}, 0
	q.First, q.Tries, q.OldTries, q.Refusals, q.PutOff = time.Time{}, 0, 0, 0, 0
	if q.Head >= q.DropTo {
		q.DropTo, q.DropReason = 0, ""
	}
}

// skip takes the oldest notification out of the queue. The next one waits as long as it
// had to: that is the receiver's back-off, or its wish, and a cancelled subscription says
// nothing of how it does. Only one that was refused, and nothing else, waited for itself.
func (q *Queue) skip() {
	due, delay := q.Due, q.Delay
	refused := q.Tries > 0 && q.Refusals == q.Tries && q.PutOff == 0
	if q.advance(); !refused {
		q.Due, q.Delay = due, delay
	}
}

// enqueue counts a new notification. It is not late because an empty queue stood still.
func (q *Queue) enqueue(at time.Time) {
	if q.Since.IsZero() {
		q.Since = at
	}
	if q.Pending() == 0 && at.After(q.Due) {
		q.Due, q.Delay = time.Time{}, 0
	}
	q.Next++
}

// hurry makes what waits due now. An attempt in flight may have begun before whatever was
// mended, so that another one follows if it fails.
func (q *Queue) hurry() {
	if q.InFlight {
		q.Again = true
		return
	}
	q.Due, q.Delay = time.Time{}, 0
}

// unlimited forgets the limit of the receiver once nothing waits for it any more.
func (q *Queue) unlimited() {
	if q.Pending() == 0 {
		q.LimitedSince, q.Limits, q.LimitReason = time.Time{}, 0, ""
	}
}

// lose says that the attempt in flight is as if it had not begun. What was never tried has
// no time to be given up at.
func (q *Queue) lose() {
	q.InFlight, q.Again = false, false
	if q.Tries == 0 {
		q.First = time.Time{}
	}
}

// held says that the attempt in flight could begin at ready only: to wait for the rate of
// its sink is no standstill, and no time in which anything failed.
func (q *Queue) held(ready time.Time) {
	if !ready.After(q.Began) {
		return
	}
	if q.Began = ready; q.Tries == 0 {
		q.First = ready
	}
}

// notice looks for a standstill: the time at which something begins or ends is far from
// when it should have. Then the failures that giving up needs are counted anew.
func (q *Queue) notice(at time.Time) {
	due := q.Due
	if q.Began.After(due) {
		due = q.Began
	}
	if !due.IsZero() && at.Sub(due) > max(standstill, q.Delay) {
		q.OldTries, q.OldFailures, q.PutOff = q.Tries, q.Failures, 0
	}
}

// remember says that from at on there is something to forget.
func (q *Queue) remember(at time.Time, p Policy) {
	if q.PruneAt.IsZero() {
		q.PruneAt = at.Add(p.Remember)
	}
}

// clamp corrects times that cannot be, since the clock was set back.
func (q *Queue) clamp(at time.Time, p Policy) {
	longest := q.Delay
	if longest == 0 {
		longest = p.longest()
	}
	q.Due = earlier(q.Due, at.Add(longest))
	q.Began = earlier(q.Began, at)
	q.First = earlier(q.First, at)
	q.FailingSince = earlier(q.FailingSince, at)
	q.LastSuccess, q.LastFailure = earlier(q.LastSuccess, at), earlier(q.LastFailure, at)
	q.ExpiredSince, q.LimitedSince = earlier(q.ExpiredSince, at), earlier(q.LimitedSince, at)
	q.ToldDegraded = earlier(q.ToldDegraded, at)
	q.PruneAt = earlier(q.PruneAt, at.Add(max(p.Remember, pruneEvery)))
}

func (q *Queue) pruned(ev pruned) {
	q.Markers -= ev.Markers
	switch {
	case ev.More:
		q.PruneAt = ev.At.Add(pruneAgain)
	case ev.Left:
		q.PruneAt = ev.At.Add(pruneEvery)
	default:
		q.PruneAt = q.forgetPast(ev.At)
	}
}

// forgetPast returns when the last success and failure are to be forgotten; where that is
// not after at, they are.
func (q *Queue) forgetPast(at time.Time) time.Time {
	last := q.LastSuccess
	if q.LastFailure.After(last) {
		last = q.LastFailure
	}
	if forget := last.Add(keepPast); !last.IsZero() && forget.After(at) {
		return forget
	}
	q.LastSuccess, q.LastFailure, q.PastReason = time.Time{}, time.Time{}, ""
	return time.Time{}
}

func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// event is what happens to a Queue: enqueued, resulted, woken, hurried, lost, remembered
// or pruned.
type event interface{ at() time.Time }

type (
	// enqueued says that notification number Queue.Next was put behind the others.
	enqueued struct{ At time.Time }
	// resulted says how an attempt ended: it delivered the Before oldest notifications, and
	// Outcome is how it went with the one behind them, which was the last it tried. Jitter
	// spreads the next attempt; 0 <= Jitter < 1. Degraded says why a notification was
	// delivered other than was wanted. Ready is when the rate of its sink let the attempt
	// begin, zero where it is not known.
	resulted struct {
		At       time.Time
		Ready    time.Time
		Attempt  uint64
		Before   int
		Outcome  outcome
		Degraded string
		Jitter   float64
	}
	// woken says that the time of a wake has come, or that the process has just started.
	woken struct{ At time.Time }
	// hurried says that somebody asks for what waits to be tried now.
	hurried struct{ At time.Time }
	// lost says that the attempt in flight went down with the process that made it.
	lost struct{ At time.Time }
	// remembered says that there is something new to forget one day; Markers of it are
	// cancelled subscriptions.
	remembered struct {
		At      time.Time
		Markers int
	}
	// pruned says what came of a prune: Markers cancelled subscriptions were forgotten,
	// something is Left, More of it could be forgotten at once.
	pruned struct {
		At         time.Time
		Markers    int
		Left, More bool
	}
)

func (e enqueued) at() time.Time   { return e.At }
func (e resulted) at() time.Time   { return e.At }
func (e woken) at() time.Time      { return e.At }
func (e hurried) at() time.Time    { return e.At }
func (e lost) at() time.Time       { return e.At }
func (e remembered) at() time.Time { return e.At }
func (e pruned) at() time.Time     { return e.At }

// action is what an event leads to: send, done, dead, drop, tell, prune or wake.
type action interface{ action() }

type (
	// send begins attempt Number, of the notification Seq and of those behind it that the
	// sink takes with it, Most in all. Slow says that the receiver failed last time.
	send struct {
		Seq    uint64
		Number uint64
		Most   int
		Slow   bool
	}
	// done forgets the notification Seq and remembers that it was delivered with the last
	// of Attempts attempts.
	done struct {
		Seq      uint64
		Attempts int
	}
	// dead gives up the notification Seq after Attempts counted attempts. Expired says
	// that it is because its receiver is expired.
	dead struct {
		Seq      uint64
		Attempts int
		Reason   string
		Expired  bool
	}
	// drop forgets the notification Seq, whose subscription was cancelled, after Attempts
	// counted attempts.
	drop struct {
		Seq      uint64
		Attempts int
	}
	// tell tells of a change of state, which the notification Seq brought. Since is when
	// the state began that the event tells of, or ends; Count how many attempts failed in
	// a row; Expired belongs to a recovery.
	tell struct {
		Seq     uint64
		Event   pipeline.HealthEvent
		Since   time.Time
		Count   int
		Reason  string
		Expired bool
	}
	// prune forgets what was remembered before Before, behind the other actions. A pruned
	// event follows.
	prune struct{ Before time.Time }
	// wake asks for a woken event at At, or for none where At is zero. AtStart asks for
	// one at the next start of the process too.
	wake struct {
		At      time.Time
		AtStart bool
	}
)

func (send) action()  {}
func (done) action()  {}
func (dead) action()  {}
func (drop) action()  {}
func (tell) action()  {}
func (prune) action() {}
func (wake) action()  {}
