package sinks

import (
	"time"
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
	// Due is when the next attempt may begin; zero means at once.
	Due time.Time `json:"due,omitzero"`

	// First is when the first attempt of the oldest notification began. Tries counts its
	// failed attempts, Refusals those of them in which the receiver refused it.
	First    time.Time `json:"first,omitzero"`
	Tries    int       `json:"tries,omitempty"`
	Refusals int       `json:"refusals,omitempty"`

	// Failures counts the failed attempts since the receiver's last success, FailingSince
	// is the first of them, Reason says why the last one failed.
	Failures     int       `json:"failures,omitempty"`
	FailingSince time.Time `json:"failing_since,omitzero"`
	Reason       string    `json:"reason,omitempty"`

	// DropTo and DropReason say that the pending notifications numbered below DropTo are to
	// be given up.
	DropTo     uint64 `json:"drop_to,omitempty"`
	DropReason string `json:"drop_reason,omitempty"`

	// PruneAt is when delivered IDs are next looked through for those to forget; zero
	// means that none is remembered.
	PruneAt time.Time `json:"prune_at,omitzero"`
}

// Pending returns how many notifications are pending.
func (q Queue) Pending() int { return int(q.Next - q.Head) }

// advance takes the oldest notification out of the queue.
func (q *Queue) advance() {
	q.Head++
	q.Due, q.First, q.Tries, q.Refusals = time.Time{}, time.Time{}, 0, 0
}

// Event is what happens to a Queue: Enqueued, Resulted, Woken or Lost.
type Event interface{ at() time.Time }

type (
	// Enqueued says that notification number Queue.Next was put behind the others.
	Enqueued struct{ At time.Time }
	// Resulted says how an attempt ended. Jitter spreads the next one; 0 <= Jitter < 1.
	Resulted struct {
		At      time.Time
		Attempt uint64
		Outcome Outcome
		Jitter  float64
	}
	// Woken says that the time of a Wake has come, or that the process has just started.
	Woken struct{ At time.Time }
	// Lost says that the attempt in flight went down with the process that made it.
	Lost struct{ At time.Time }
)

func (e Enqueued) at() time.Time { return e.At }
func (e Resulted) at() time.Time { return e.At }
func (e Woken) at() time.Time    { return e.At }
func (e Lost) at() time.Time     { return e.At }

// Action is what an event leads to: Send, Done, Dead, Prune or Wake.
type Action interface{ action() }

type (
	// Send begins attempt Number, of the notification Seq. Slow says that the receiver
	// failed last time.
	Send struct {
		Seq    uint64
		Number uint64
		Slow   bool
	}
	// Done forgets the notification Seq and remembers that it was delivered.
	Done struct{ Seq uint64 }
	// Dead gives up the notification Seq after Attempts counted attempts.
	Dead struct {
		Seq      uint64
		Attempts int
		Reason   string
	}
	// Prune forgets the IDs that were delivered before Before.
	Prune struct{ Before time.Time }
	// Wake asks for a Woken event at At, or for none where At is zero. AtStart asks for
	// one at the next start of the process too.
	Wake struct {
		At      time.Time
		AtStart bool
	}
)

func (Send) action()  {}
func (Done) action()  {}
func (Dead) action()  {}
func (Prune) action() {}
func (Wake) action()  {}
