package sinks

import (
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Event is what happens to a Queue: Enqueued, Resulted, Woken, Lost, Remembered or
// Pruned.
type Event interface{ at() time.Time }

type (
	// Enqueued says that notification number Queue.Next was put behind the others.
	Enqueued struct{ At time.Time }
	// Resulted says how an attempt ended: it delivered the Before oldest notifications, and
	// Outcome is how it went with the one behind them, which was the last it tried. Jitter
	// spreads the next attempt; 0 <= Jitter < 1. Degraded says why a notification was
	// delivered other than was wanted. Ready is when the rate of its sink let the attempt
	// begin, zero where it had not to wait.
	Resulted struct {
		At       time.Time
		Ready    time.Time
		Attempt  uint64
		Before   int
		Outcome  Outcome
		Degraded string
		Jitter   float64
	}
	// Woken says that the time of a Wake has come, or that the process has just started.
	Woken struct{ At time.Time }
	// Lost says that the attempt in flight went down with the process that made it.
	Lost struct{ At time.Time }
	// Remembered says that there is something new to forget one day; Markers of it are
	// cancelled subscriptions.
	Remembered struct {
		At      time.Time
		Markers int
	}
	// Pruned says what came of a Prune: Markers cancelled subscriptions were forgotten,
	// something is Left, More of it could be forgotten at once.
	Pruned struct {
		At         time.Time
		Markers    int
		Left, More bool
	}
)

func (e Enqueued) at() time.Time   { return e.At }
func (e Resulted) at() time.Time   { return e.At }
func (e Woken) at() time.Time      { return e.At }
func (e Lost) at() time.Time       { return e.At }
func (e Remembered) at() time.Time { return e.At }
func (e Pruned) at() time.Time     { return e.At }

// Action is what an event leads to: Send, Done, Dead, Drop, Tell, Prune or Wake.
type Action interface{ action() }

type (
	// Send begins attempt Number, of the notification Seq and of those behind it that the
	// sink takes with it. Slow says that the receiver failed last time: only Seq is tried.
	Send struct {
		Seq    uint64
		Number uint64
		Slow   bool
	}
	// Done forgets the notification Seq and remembers that it was delivered with the last
	// of Attempts attempts.
	Done struct {
		Seq      uint64
		Attempts int
	}
	// Dead gives up the notification Seq after Attempts counted attempts. Expired says
	// that it is because its receiver is expired.
	Dead struct {
		Seq      uint64
		Attempts int
		Reason   string
		Expired  bool
	}
	// Drop forgets the notification Seq, whose subscription was cancelled, after Attempts
	// counted attempts.
	Drop struct {
		Seq      uint64
		Attempts int
	}
	// Tell tells of a change of state, which the notification Seq brought. Since is when
	// the state began that the event tells of, or ends; Count how many attempts failed in
	// a row; Expired belongs to a recovery.
	Tell struct {
		Seq     uint64
		Event   pipeline.HealthEvent
		Since   time.Time
		Count   int
		Reason  string
		Expired bool
	}
	// Prune forgets what was remembered before Before, behind the other actions. A Pruned
	// event follows.
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
func (Drop) action()  {}
func (Tell) action()  {}
func (Prune) action() {}
func (Wake) action()  {}
