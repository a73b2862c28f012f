package sinks

import (
	"time"

	"github.com/vokter/vokter/pipeline"
)

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
