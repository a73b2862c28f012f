package delivery

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/vokter/vokter/internal/stored"
)

// phase is how far an attempt has come. Its order is that of the constants, and an attempt never goes back.
type phase int

const (
	phaseBegun    phase = iota // not taken over by the pool: not committed yet, or made by Config.Hand
	phaseRateWait              // waits until the rate of its sink lets it begin
	phaseQueued                // waits for a slot
	phaseRunning               // calls its sink, or its result is being posted
	phasePosted                // its result was posted
	phaseEnded                 // it has no result
)

// inFlightAttempt is one attempt in this process, from the transaction that begins it to the one that
// applies its result. If the process loses the receiver before that, the attempt counts as not made, and
// whoever has the receiver then sends the same notifications again.
type inFlightAttempt struct {
	Attempt
	phase phase
	// needsSlowSlot says that the last attempt failed, so that this one needs a slow slot.
	needsSlowSlot bool
	// cancelled says that one of its subscriptions was cancelled before the sink was called.
	cancelled bool
	// readyAt is when the rate of the sink lets the attempt begin; zero in phaseBegun.
	readyAt time.Time
	// timer ends phaseRateWait. reservation is the attempt's share of the rate.
	timer       *time.Timer
	reservation *rate.Reservation
}

// receiverInfo is what this process knows of one receiver that has pending notifications or digests.
type receiverInfo struct {
	pending int
	// triedSince is when the first attempt of the oldest pending notification began; zero before it.
	triedSince, nextDue time.Time
	// collected counts the notifications in digests, the first of which ends at digestsDue.
	collected  int
	digestsDue time.Time
	// away says that the last forget found the receiver with another process.
	away bool
}

// attemptTracker is what this process knows of receivers and their attempts, in memory.
//
// An attempt calls its sink only if its lease is committed when its slot is free.
type attemptTracker struct {
	// attempts are those that this process makes, by receiver and number.
	attempts stored.Leases[uint64, *inFlightAttempt]

	mu        sync.Mutex
	receivers map[string]receiverInfo
	// failing are those of receivers whose last attempt failed.
	failing map[string]struct{}
	// openAttempts are those that the pool took over, until their result was posted or nobody waits
	// for it.
	openAttempts map[*inFlightAttempt]struct{}
}

// recordCommit notes the Queue of a receiver after its commit. One commit may cover several messages:
// recordCommit is called for each.
func (fs *attemptTracker) recordCommit(receiver string, q Queue) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	before, _ := fs.attempts.Committed(receiver)
	if q.InFlight {
		fs.attempts.Commit(receiver, q.Attempt)
	} else {
		fs.attempts.End(receiver)
	}
	if f := before.Value; f != nil && f.phase == phaseRateWait && !fs.isCurrent(f) {
		fs.removeLocked(f) // begun before the process lost the receiver
	}
	delete(fs.failing, receiver)
	if q.Pending() > 0 && q.Failures > 0 && !q.InFlight {
		fs.failing[receiver] = struct{}{}
	}
	if q.Pending() == 0 && q.Windows.Open == 0 {
		delete(fs.receivers, receiver)
		return
	}
	fs.receivers[receiver] = receiverInfo{pending: q.Pending(), triedSince: q.TriedSince, nextDue: q.Due, collected: q.Windows.Items, digestsDue: q.Windows.Due}
}

// forgetEvery is how often receivers of other processes are forgotten.
const forgetEvery = time.Hour

// forget forgets the receivers that this process does not own now and did not own at the call before.
func (fs *attemptTracker) forget(owned func(receiver string) bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for receiver, e := range fs.receivers {
		switch away := !owned(receiver); {
		case away && e.away:
			delete(fs.receivers, receiver)
			delete(fs.failing, receiver)
		case away != e.away:
			e.away = away
			fs.receivers[receiver] = e
		}
	}
	fs.attempts.Keep(func(receiver string) bool {
		_, known := fs.receivers[receiver]
		return known || owned(receiver)
	})
}

// isCurrent reports whether f is the attempt that its receiver has in flight by the committed state.
func (fs *attemptTracker) isCurrent(f *inFlightAttempt) bool {
	l, _ := fs.attempts.Committed(f.Receiver.Sink)
	return l.Value == f
}

// removeLocked removes an attempt whose result was posted, or that nobody waits for, from
// openAttempts. fs.mu is held.
func (fs *attemptTracker) removeLocked(f *inFlightAttempt) {
	if f.phase == phaseRateWait {
		f.timer.Stop()
	}
	if f.phase != phasePosted {
		f.phase = phaseEnded
	}
	delete(fs.openAttempts, f)
}

// isResultExpected reports whether the result of an attempt is still to come.
func (fs *attemptTracker) isResultExpected(receiver string, number, epoch uint64) bool {
	l, ok := fs.attempts.Find(receiver, number, epoch)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return ok && l.Value.phase < phasePosted
}

// hasPostedResults reports whether the result of an attempt for an owned receiver was posted and is not committed.
func (fs *attemptTracker) hasPostedResults(owned func(receiver string) bool) (found bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.attempts.Each(func(receiver string, l stored.Lease[uint64, *inFlightAttempt]) {
		found = found || l.Value.phase == phasePosted && owned(receiver)
	})
	return found
}

// findAttempt returns an attempt that this process made; the zero Attempt if it does not have it.
func (fs *attemptTracker) findAttempt(receiver string, number, epoch uint64) Attempt {
	l, ok := fs.attempts.Find(receiver, number, epoch)
	if !ok {
		return Attempt{}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return l.Value.Attempt
}

// receiversWithDigests returns the receivers for which digests are collected.
func (fs *attemptTracker) receiversWithDigests() (receivers []string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for receiver, e := range fs.receivers {
		if e.collected > 0 {
			receivers = append(receivers, receiver)
		}
	}
	return receivers
}

// countPending counts the pending notifications, without those in digests.
func (fs *attemptTracker) countPending(owned func(receiver string) bool) int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := 0
	for receiver, e := range fs.receivers {
		if owned(receiver) {
			n += e.pending
		}
	}
	return n
}

// earliestTry returns since when the pending notification is tried that is tried for longest. It is
// zero where no attempt has begun.
func (fs *attemptTracker) earliestTry(owned func(receiver string) bool) time.Time {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var oldest time.Time
	for receiver, e := range fs.receivers {
		if !e.triedSince.IsZero() && e.pending > 0 && owned(receiver) && (oldest.IsZero() || e.triedSince.Before(oldest)) {
			oldest = e.triedSince
		}
	}
	return oldest
}

// backlog counts the notifications that may be delivered until a time, and the others.
func (fs *attemptTracker) backlog(until time.Time, owned, paused func(receiver string) bool) (due, parked int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for receiver, e := range fs.receivers {
		if !owned(receiver) {
			continue
		}
		next := e.nextDue
		if l, ok := fs.attempts.Committed(receiver); ok {
			next = l.Value.readyAt
		}
		if !next.After(until) && !paused(receiver) {
			due += e.pending
		} else {
			parked += e.pending
		}
		if !e.digestsDue.After(until) {
			due += e.collected
		} else {
			parked += e.collected
		}
	}
	return due, parked
}

// isIdle reports whether all open attempts wait for the rate of their sink until after a time.
func (fs *attemptTracker) isIdle(until time.Time) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for f := range fs.openAttempts {
		if f.phase != phaseRateWait || !f.readyAt.After(until) {
			return false
		}
	}
	return true
}
