package sinks

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/vokter/vokter/internal/lease"
	"github.com/vokter/vokter/pipeline/flow"
)

// phase is how far a flight has come. A flight never goes back.
type phase int

const (
	phaseBegun   phase = iota // not taken over by the pool: not committed yet, or made by Config.Hand
	phaseHeld                 // waits until the rate of its sink lets it begin
	phaseQueued               // waits for a slot
	phaseRunning              // calls its sink, or its result is being posted
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
	// began is Queue.Began of the attempt.
	began time.Time
	// answer is the result, once the sink has returned. Its ID is empty before that.
	answer flow.Message
	// ready is when the rate of the sink lets the attempt begin; zero in phaseBegun.
	ready time.Time
	// timer ends phaseHeld. reservation is the flight's share of the rate.
	timer       *time.Timer
	reservation *rate.Reservation
}

// entry is what this process knows of one receiver that has pending notifications or digests.
type entry struct {
	pending int
	// first is when the first attempt of the oldest pending notification began; zero before it.
	first, due time.Time
	// collected counts the notifications in digests, the first of which ends at ends.
	collected int
	ends      time.Time
	// away says that the last forget found the receiver with another process.
	away bool
}

// flights is what this process knows of receivers and their attempts, in memory.
//
// A flight calls its sink only if its lease is committed when its slot is free. open has the flights
// that the pool took over, until their result was posted or nobody waits for it.
type flights struct {
	// attempts are those that this process makes, by receiver and number. An attempt is handed on
	// when its result is posted. The result is kept until it is committed: if the epoch ends before
	// that, it is posted again.
	attempts lease.Table[uint64, *flight]

	mu        sync.Mutex
	receivers map[string]entry
	open      map[*flight]struct{}
}

// postedFor is how long a posted result may take to be handled. After that it counts as lost.
const postedFor = time.Minute

// note notes the Queue of a receiver after its commit. One commit may cover several messages, for
// each of which note is called.
func (fs *flights) note(receiver string, q Queue) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	before, _ := fs.attempts.Committed(receiver)
	if q.InFlight {
		fs.attempts.Commit(receiver, q.Attempt)
	} else {
		fs.attempts.End(receiver)
	}
	if f := before.Value; f != nil && f.phase == phaseHeld && !fs.makes(f) {
		fs.close(f) // begun before the process lost the receiver
	}
	if q.Pending() == 0 && q.Windows.Open == 0 {
		delete(fs.receivers, receiver)
		return
	}
	fs.receivers[receiver] = entry{pending: q.Pending(), first: q.First, due: q.Due, collected: q.Windows.Items, ends: q.Windows.Due}
}

// forgetEvery is how often receivers of other processes are forgotten. Until then, the result of an
// attempt waits for its receiver to come back: nobody else can tell that it was delivered.
const forgetEvery = 24 * time.Hour

// forget forgets the receivers that this process does not own now and did not own at the call before.
func (fs *flights) forget(owned func(receiver string) bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for receiver, e := range fs.receivers {
		switch away := !owned(receiver); {
		case away && e.away:
			delete(fs.receivers, receiver)
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

// makes reports whether f is the attempt that its receiver has in flight.
func (fs *flights) makes(f *flight) bool {
	l, _ := fs.attempts.Committed(f.Receiver.Sink)
	return l.Value == f
}

// close removes a flight whose result was posted, or that nobody waits for, from open. fs.mu
// is held.
func (fs *flights) close(f *flight) {
	if f.phase == phaseHeld {
		f.timer.Stop()
	}
	delete(fs.open, f)
}

// comes reports whether the result of an attempt is still to come at now.
func (fs *flights) comes(receiver string, number, epoch uint64, now time.Time) bool {
	l, ok := fs.attempts.Find(receiver, number, epoch)
	return ok && (!l.HandedOn() || now.Sub(l.Since) < postedFor)
}

// made returns an attempt that this process made; the zero Attempt if it does not have it.
func (fs *flights) made(receiver string, number, epoch uint64) Attempt {
	l, ok := fs.attempts.Find(receiver, number, epoch)
	if !ok {
		return Attempt{}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return l.Value.Attempt
}

// lighten frees the notifications of f, whose result waits until its receiver comes back.
func (fs *flights) lighten(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.Notifications, f.contexts = nil, nil
}

// lost notes that nobody gets the result of f. The next wake repeats the attempt. fs.mu is
// held.
func (fs *flights) lost(f *flight) {
	if fs.makes(f) {
		fs.attempts.End(f.Receiver.Sink)
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
		if l, ok := fs.attempts.Committed(receiver); ok {
			next = l.Value.ready
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
