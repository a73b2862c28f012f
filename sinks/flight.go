package sinks

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// phase is how far a flight has come. A flight never goes back.
type phase int

const (
	phaseBegun    phase = iota // not taken over by the pool: not committed yet, or made by Config.Hand
	phaseHeld                  // waits until the rate of its sink lets it begin
	phaseQueued                // waits for a slot
	phaseRunning               // calls its sink, or its result is being posted
	phaseAnswered              // its result was posted
)

// flight is one attempt in this process, from the transaction that begins it to the one that
// applies its result.
type flight struct {
	Attempt
	phase phase
	// slow says that the last attempt failed, so that this one needs a slow slot.
	slow bool
	// owned says that the process owned the receiver when the pool took the flight over.
	owned bool
	// recalled says that a subscription was cancelled before the sink was called.
	recalled bool
	// ready is when the rate of the sink lets the attempt begin; zero in phaseBegun.
	ready time.Time
	// timer ends phaseHeld. reservation is the flight's share of the rate.
	timer       *time.Timer
	reservation *rate.Reservation
	// posted is when the result was posted. epoch is the one in which the flight began; in
	// phaseAnswered it is the one in which the result was posted.
	posted time.Time
	epoch  uint64
}

// entry is what this process knows of one receiver that has pending notifications or digests.
type entry struct {
	pending int
	// first is when the first attempt of the oldest pending notification began; zero before it.
	first, due time.Time
	// collected counts the notifications in digests, the first of which ends at ends.
	collected int
	ends      time.Time
	// current is the attempt in flight, next the one that an open transaction begins.
	current, next *flight
}

// flights is what this process knows of receivers and their attempts, in memory. No other place
// says which attempt of a receiver is in flight, or how far it has come.
//
// Invariant: current is the attempt that the last committed Queue of a receiver has in flight,
// or nil where this process does not make that attempt. A transaction sets only next, and its
// commit makes next the current flight. Where a transaction is undone, current stands, and the
// next flight that it left is never found: the number of the Queue or the epoch is another one.
// A flight calls its sink only if it is current when its slot is free. open has the flights
// that the pool took over, until their result was posted or nobody waits for it.
type flights struct {
	mu        sync.Mutex
	receivers map[string]entry
	open      map[*flight]struct{}
}

// postedFor is how long a posted result may take to be handled. After that it counts as lost.
const postedFor = time.Minute

// begin makes f the next flight of its receiver, before the commit.
func (fs *flights) begin(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	id := f.Receiver.Sink
	e := fs.receivers[id]
	e.next = f
	fs.receivers[id] = e
}

// commit notes the Queue of a receiver after its commit. One commit may cover several
// messages, for each of which commit is called.
func (fs *flights) commit(receiver string, q Queue) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	old := fs.receivers[receiver]
	e := entry{pending: q.Pending(), first: q.First, due: q.Due, collected: q.Windows.Items, ends: q.Windows.Due, next: old.next}
	if e.current = old.current; e.next != nil && e.next.Number == q.Attempt {
		e.current, e.next = e.next, nil
	}
	if e.current != nil && (!q.InFlight || e.current.Number != q.Attempt) {
		e.current = nil
	}
	if f := old.current; f != nil && f != e.current && f.phase == phaseHeld {
		fs.close(f) // begun before the process lost the receiver
	}
	if e.pending == 0 && q.Windows.Open == 0 && e.next == nil {
		delete(fs.receivers, receiver)
		return
	}
	fs.receivers[receiver] = e
}

// close removes a flight whose result was posted, or that nobody waits for, from open. fs.mu
// is held.
func (fs *flights) close(f *flight) {
	if f.phase == phaseHeld {
		f.timer.Stop()
	}
	delete(fs.open, f)
}

// find returns the flight with this number that is current, or next in this epoch; nil if
// there is none. A result that was posted in another epoch is lost, and its flight is not found. fs.mu
// is held.
func (fs *flights) find(receiver string, number, epoch uint64) *flight {
	e := fs.receivers[receiver]
	switch {
	case e.current != nil && e.current.Number == number && (e.current.phase != phaseAnswered || e.current.epoch == epoch):
		return e.current
	case e.next != nil && e.next.Number == number && e.next.epoch == epoch:
		return e.next
	}
	return nil
}

// knows reports whether this process makes or made the attempt.
func (fs *flights) knows(receiver string, number, epoch uint64) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.find(receiver, number, epoch) != nil
}

// attemptOf returns an attempt that this process makes or made, or nil.
func (fs *flights) attemptOf(receiver string, number, epoch uint64) *Attempt {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.find(receiver, number, epoch); f != nil {
		return &f.Attempt
	}
	return nil
}

// pending reports whether the result of the attempt is still to come.
func (fs *flights) pending(receiver string, number uint64, now time.Time, epoch uint64) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.find(receiver, number, epoch)
	return f != nil && (f.phase != phaseAnswered || now.Sub(f.posted) < postedFor)
}

// answered notes that the result of an attempt was posted.
func (fs *flights) answered(receiver string, number uint64, at time.Time, epoch uint64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.receivers[receiver].current; f != nil && f.Number == number {
		f.phase, f.posted, f.epoch = phaseAnswered, at, epoch
	}
}

// lost notes that nobody gets the result of f. The next wake repeats the attempt. fs.mu is
// held.
func (fs *flights) lost(f *flight) {
	id := f.Receiver.Sink
	if e := fs.receivers[id]; e.current == f {
		e.current = nil
		fs.receivers[id] = e
	}
}

// collecting returns the receivers for which digests are collected.
func (fs *flights) collecting() (receivers []string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for receiver, e := range fs.receivers {
		if e.collected > 0 {
			receivers = append(receivers, receiver)
		}
	}
	return receivers
}

// waiting counts the pending notifications, without those in digests.
func (fs *flights) waiting(owned func(receiver string) bool) int {
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

// oldest returns when the first attempt of the pending notification began that is tried for
// longest. It is zero where no attempt has begun.
func (fs *flights) oldest(owned func(receiver string) bool) time.Time {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var oldest time.Time
	for receiver, e := range fs.receivers {
		if !e.first.IsZero() && e.pending > 0 && owned(receiver) && (oldest.IsZero() || e.first.Before(oldest)) {
			oldest = e.first
		}
	}
	return oldest
}

// backlog counts the notifications that may be delivered until a time, and the others.
func (fs *flights) backlog(until time.Time, owned func(receiver string) bool) (due, parked int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for receiver, e := range fs.receivers {
		if !owned(receiver) {
			continue
		}
		next := e.due
		if e.current != nil {
			next = e.current.ready
		}
		if !next.After(until) {
			due += e.pending
		} else {
			parked += e.pending
		}
		if !e.ends.After(until) {
			due += e.collected
		} else {
			parked += e.collected
		}
	}
	return due, parked
}

// idle reports whether no flight is open but those that are held until after a time.
func (fs *flights) idle(until time.Time) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for f := range fs.open {
		if f.phase != phaseHeld || !f.ready.After(until) {
			return false
		}
	}
	return true
}
