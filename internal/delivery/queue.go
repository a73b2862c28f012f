package delivery

import (
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Queue is the stored state of one receiver. Its pending notifications are stored beside it,
// numbered in the order of their arrival. The zero Queue is that of an unknown receiver.
type Queue struct {
	// Head is the number of the oldest pending notification, Next the number that the
	// next one gets. Nothing is pending where they are equal.
	Head uint64 `json:"head"`
	Next uint64 `json:"next"`
	// Attempt is the number of the latest attempt. InFlight says that its result is not known
	// yet.
	Attempt  uint64 `json:"attempt"`
	InFlight bool   `json:"in_flight,omitempty"`
	// AttemptBegan is when the attempt in flight began, or a lost one that is to be repeated.
	AttemptBegan time.Time `json:"began,omitzero"`
	// LastBatch is how many notifications the last attempt delivered.
	LastBatch int `json:"took,omitempty"`
	// Due is when the next attempt may begin; zero means at once. Delay is the longest time
	// from the last failure to Due.
	Due   time.Time     `json:"due,omitzero"`
	Delay time.Duration `json:"delay,omitempty"`
	// NotBefore is the earliest time of the next attempt by what the receiver asked for with its last failure.
	NotBefore time.Time `json:"not_before,omitzero"`
	// KnownSince is when the first notification for the receiver came. A receiver that was forgotten
	// starts again, and so do the numbers of its attempts.
	KnownSince time.Time `json:"since,omitzero"`

	// TriedSince is when the first attempt of the oldest notification began. Tries counts its
	// failed attempts, and Refusals those in which the receiver refused it.
	TriedSince time.Time `json:"first,omitzero"`
	Tries      int       `json:"tries,omitempty"`
	Refusals   int       `json:"refusals,omitempty"`
	// UncountedTries and UncountedFailures are how many of Tries and Failures happened before the last
	// standstill. They do not count towards DeadAfter and ExpireAfter.
	UncountedTries    int `json:"old_tries,omitempty"`
	UncountedFailures int `json:"old_failures,omitempty"`

	// Failures counts the failed attempts since the last success of the receiver. FailingSince
	// is the time of the first of them, Reason says why the last one failed.
	Failures     int       `json:"failures,omitempty"`
	FailingSince time.Time `json:"failing_since,omitzero"`
	Reason       string    `json:"reason,omitempty"`
	// A receiver that was sent too much puts attempts off (for example by status 429), which is
	// no failure. PutOffTries counts the attempts of the oldest notification that were put off in a
	// row. LimitedSince is the time of the first one since the queue was last empty, LimitedCount how
	// many there were since then, LimitReason what the receiver said last.
	PutOffTries  int       `json:"put_off,omitempty"`
	LimitedSince time.Time `json:"limited_since,omitzero"`
	LimitedCount int       `json:"limits,omitempty"`
	LimitReason  string    `json:"limit_reason,omitempty"`
	// RetryRequested says that a retry was requested during the attempt in flight. If that fails, the
	// next one follows at once.
	RetryRequested bool `json:"again,omitempty"`
	// LastSuccess is the time of the last delivery, LastFailure that of the last failed attempt.
	// PastReason is why that failed, if a delivery succeeded since. They are kept for keepResults,
	// longer than everything else.
	LastSuccess time.Time `json:"last_success,omitzero"`
	LastFailure time.Time `json:"last_failure,omitzero"`
	PastReason  string    `json:"past_reason,omitempty"`
	// FailingReported and DeadLetterReported say which health events were emitted since the last success:
	// receiver_failing, dead_letter.
	FailingReported    bool `json:"told_failing,omitempty"`
	DeadLetterReported bool `json:"told_dead,omitempty"`
	// DegradedReportedAt is when receiver_degraded was last emitted.
	DegradedReportedAt time.Time `json:"told_degraded,omitzero"`

	// ExpiredSince is when the receiver expired, zero if it is not expired. ExpiredReason says
	// why. A notification for an expired receiver is tried once.
	ExpiredSince  time.Time `json:"expired_since,omitzero"`
	ExpiredReason string    `json:"expired_reason,omitempty"`

	// DropTo and DropReason say that the pending notifications numbered below DropTo are to
	// be given up.
	DropTo     uint64 `json:"drop_to,omitempty"`
	DropReason string `json:"drop_reason,omitempty"`

	// HasNotes says that there may be notes about documents.
	HasNotes bool `json:"noted,omitempty"`
	// WithdrawnMarkers counts the cancelled subscriptions that are remembered.
	WithdrawnMarkers int `json:"markers,omitempty"`
	// PruneAt is when old records are next removed; zero means that there are none.
	PruneAt time.Time `json:"prune_at,omitzero"`

	// Windows are the digests that are being collected.
	Windows Windows `json:"windows,omitzero"`
}

// Pending returns how many notifications are pending.
func (q Queue) Pending() int { return int(q.Next - q.Head) }

// Limited reports whether the receiver puts attempts off because it was sent too much.
func (q Queue) Limited() bool { return !q.LimitedSince.IsZero() }

// Expired reports whether the receiver is expired.
func (q Queue) Expired() bool { return !q.ExpiredSince.IsZero() }

// healthy reports whether the receiver takes all that it is sent.
func (q Queue) healthy() bool { return q.Failures == 0 && !q.Limited() && !q.Expired() }

// mustDropWindows reports whether all digests must be given up now: the receiver is expired, and
// nothing else is pending.
func (q Queue) mustDropWindows() bool {
	return q.Windows.DropReason != "" && (q.Pending() == 0 || q.DropTo == q.Next)
}

// canForget reports whether q need not be stored: it says nothing that the zero Queue does not.
func (q Queue) canForget() bool {
	return q.Pending() == 0 && q.Failures == 0 && q.PruneAt.IsZero() && q.Windows.Open == 0
}

// batchLimit returns how many notifications an attempt may have: one after a failure, otherwise
// about twice as many as the last one delivered, since all are held in memory.
func (q Queue) batchLimit() int {
	if q.Failures > 0 {
		return 1
	}
	return 2*q.LastBatch + 1
}

// removeHead takes the oldest notification out of the queue.
func (q *Queue) removeHead() {
	q.Head++
	q.AttemptBegan, q.Due, q.Delay = time.Time{}, time.Time{}, 0
	q.TriedSince, q.Tries, q.UncountedTries, q.Refusals, q.PutOffTries = time.Time{}, 0, 0, 0, 0
	if q.Head >= q.DropTo {
		q.DropTo, q.DropReason = 0, ""
	}
}

// removeWithdrawnHead takes the oldest notification out of the queue, whose subscription was
// cancelled. The next one inherits its Due, which is the back-off of the receiver. Only if every attempt
// was refused, Due belonged to that one notification.
func (q *Queue) removeWithdrawnHead() {
	due, delay := q.Due, q.Delay
	refused := q.Tries > 0 && q.Refusals == q.Tries && q.PutOffTries == 0
	if q.removeHead(); !refused {
		q.Due, q.Delay = due, delay
	}
}

// enqueue counts a new notification. For an empty queue it forgets a Due in the past, which
// would look like a standstill.
func (q *Queue) enqueue(at time.Time) {
	if q.KnownSince.IsZero() {
		q.KnownSince = at
	}
	if q.Pending() == 0 && at.After(q.Due) {
		q.Due, q.Delay = time.Time{}, 0
	}
	q.Next++
}

// retryNow makes the pending notifications due now. An attempt in flight may have begun before
// the receiver was repaired. If it fails, another one follows at once.
func (q *Queue) retryNow() {
	if q.InFlight {
		q.RetryRequested = true
		return
	}
	q.Due, q.Delay = time.Time{}, 0
}

// clearLimit forgets the limit of the receiver when its queue is empty.
func (q *Queue) clearLimit() {
	if q.Pending() == 0 {
		q.LimitedSince, q.LimitedCount, q.LimitReason = time.Time{}, 0, ""
	}
}

// undoAttempt leaves the queue as if the attempt in flight had never begun.
func (q *Queue) undoAttempt() {
	q.InFlight, q.RetryRequested = false, false
	if q.Tries == 0 {
		q.TriedSince = time.Time{}
	}
}

// excludeRateWait moves the begin of the attempt in flight to ready, when the rate of the sink let
// it begin. That wait is no standstill, and does not count towards DeadAfter.
func (q *Queue) excludeRateWait(ready time.Time) {
	if !ready.After(q.AttemptBegan) {
		return
	}
	if q.AttemptBegan = ready.UTC(); q.Tries == 0 {
		q.TriedSince = q.AttemptBegan
	}
}

// detectStandstill checks whether an attempt begins or ends much later than it should have:
// the process, or its clock, stood still. The failures before that no longer count towards
// DeadAfter and ExpireAfter.
func (q *Queue) detectStandstill(at time.Time) {
	due := q.Due
	if q.AttemptBegan.After(due) {
		due = q.AttemptBegan
	}
	if !due.IsZero() && at.Sub(due) > max(standstillAfter, q.Delay) {
		q.UncountedTries, q.UncountedFailures, q.PutOffTries = q.Tries, q.Failures, 0
	}
}

// schedulePrune schedules the removal of a record that is made at at.
func (q *Queue) schedulePrune(at time.Time, p Policy) {
	if q.PruneAt.IsZero() {
		q.PruneAt = at.Add(p.Remember)
	}
}

// clampTimes corrects times in the future, which are left when the clock is set back.
func (q *Queue) clampTimes(at time.Time, p Policy) {
	longest := q.Delay
	if longest == 0 {
		longest = p.longestDelay()
	}
	q.Due = earlier(q.Due, at.Add(longest))
	q.NotBefore = earlier(q.NotBefore, q.Due)
	q.AttemptBegan = earlier(q.AttemptBegan, at)
	q.TriedSince = earlier(q.TriedSince, at)
	q.FailingSince = earlier(q.FailingSince, at)
	q.LastSuccess, q.LastFailure = earlier(q.LastSuccess, at), earlier(q.LastFailure, at)
	q.ExpiredSince, q.LimitedSince = earlier(q.ExpiredSince, at), earlier(q.LimitedSince, at)
	q.DegradedReportedAt = earlier(q.DegradedReportedAt, at)
	q.PruneAt = earlier(q.PruneAt, at.Add(max(p.Remember, pruneInterval)))
}

func (q *Queue) applyPruned(ev pruned) {
	q.WithdrawnMarkers -= ev.Markers
	switch {
	case ev.MoreOld:
		q.PruneAt = ev.At.Add(pruneMoreAfter)
	case ev.OthersRemain:
		q.PruneAt = ev.At.Add(pruneInterval)
	default:
		q.PruneAt = q.forgetOldResults(ev.At)
	}
}

// forgetOldResults forgets the last success and failure if they are too old. Otherwise it returns
// when they will be.
func (q *Queue) forgetOldResults(at time.Time) time.Time {
	last := q.LastSuccess
	if q.LastFailure.After(last) {
		last = q.LastFailure
	}
	if forget := last.Add(keepResults); !last.IsZero() && forget.After(at) {
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

// event is what happens to a Queue: enqueued, attemptEnded, woken, nudged, retryRequested, attemptLost,
// recordStored or pruned.
type event interface{ at() time.Time }

type (
	// enqueued: notification number Queue.Next was stored.
	enqueued struct{ At time.Time }
	// attemptEnded: an attempt ended. It delivered the DeliveredBefore oldest notifications. Outcome
	// is that of the one behind them, the last that it tried. 0 <= Jitter < 1 spreads the next
	// attempt. Degraded says why a notification was not delivered as configured. Ready is
	// when the rate of its sink let the attempt begin, zero if that is not known.
	attemptEnded struct {
		At              time.Time
		Ready           time.Time
		Attempt         uint64
		DeliveredBefore int
		Outcome         attemptOutcome
		Degraded        string
		Jitter          float64
	}
	// woken: the time of a wake has come, or the process has just started.
	woken struct{ At time.Time }
	// nudged: another receiver at the same host took a notification.
	nudged struct{ At time.Time }
	// retryRequested: a retry command came.
	retryRequested struct{ At time.Time }
	// attemptLost: the process that made the attempt in flight died, or its result was lost.
	attemptLost struct{ At time.Time }
	// recordStored: a record was stored that is removed later. Markers of them are for
	// cancelled subscriptions.
	recordStored struct {
		At      time.Time
		Markers int
	}
	// pruned: old records were removed, Markers of them for cancelled subscriptions. OthersRemain
	// says that there are other records, MoreOld that some of these are old, too.
	pruned struct {
		At                    time.Time
		Markers               int
		OthersRemain, MoreOld bool
	}
)

func (e enqueued) at() time.Time       { return e.At }
func (e attemptEnded) at() time.Time   { return e.At }
func (e woken) at() time.Time          { return e.At }
func (e nudged) at() time.Time         { return e.At }
func (e retryRequested) at() time.Time { return e.At }
func (e attemptLost) at() time.Time    { return e.At }
func (e recordStored) at() time.Time   { return e.At }
func (e pruned) at() time.Time         { return e.At }

// action is what an event requires: startAttempt, markDelivered, moveToDead, dropWithdrawn,
// passToSinks, emitHealth, pruneRecords or scheduleWake.
type action interface{ action() }

type (
	// startAttempt begins attempt Number with the notification Seq, and with those behind it if the
	// sink takes batches, BatchLimit in all. AfterFailure says that the last attempt failed.
	startAttempt struct {
		Seq          uint64
		Number       uint64
		BatchLimit   int
		AfterFailure bool
	}
	// markDelivered records that the last of Attempts attempts delivered the notification Seq.
	markDelivered struct {
		Seq      uint64
		Attempts int
	}
	// moveToDead gives up the notification Seq after Attempts counted attempts. Expired says that
	// its receiver is expired.
	moveToDead struct {
		Seq      uint64
		Attempts int
		Reason   string
		Expired  bool
	}
	// dropWithdrawn discards the notification Seq, whose subscription was cancelled, after Attempts
	// counted attempts.
	dropWithdrawn struct {
		Seq      uint64
		Attempts int
	}
	// passToSinks passes the notification Seq on to other sinks: those of a route, or the fallback of a
	// receiver that fails. Reason says why the last of Attempts attempts failed.
	passToSinks struct {
		Seq      uint64
		Attempts int
		Reason   string
	}
	// emitHealth emits a health event. The notification Seq caused it. Since is when the state
	// began that the event reports, or whose end it reports. Count is how many attempts failed
	// in a row. Expired says that a recovered receiver was expired.
	emitHealth struct {
		Seq     uint64
		Event   pipeline.HealthEvent
		Since   time.Time
		Count   int
		Reason  string
		Expired bool
	}
	// pruneRecords removes the records from before Before, after the other actions. A pruned event
	// follows.
	pruneRecords struct{ Before time.Time }
	// scheduleWake asks for a woken event at At, or for none if At is zero. AtStart asks for one at
	// the next start of the process, too.
	scheduleWake struct {
		At      time.Time
		AtStart bool
	}
)

func (startAttempt) action()  {}
func (markDelivered) action() {}
func (moveToDead) action()    {}
func (dropWithdrawn) action() {}
func (passToSinks) action()   {}
func (emitHealth) action()    {}
func (pruneRecords) action()  {}
func (scheduleWake) action()  {}
