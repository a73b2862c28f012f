package sinks

import (
	"sync"
	"time"
)

// book is what this process knows of receivers with something pending or collected, in
// memory. But for made it is written after commits only, of which one may stand for several
// messages.
type book struct {
	mu      sync.Mutex
	entries map[string]entry
	made    map[string]made // the last attempt for each receiver, which may yet be undone
}

// made names an attempt and the epoch in which it is made.
type made struct{ attempt, epoch uint64 }

// makes notes, before its commit, that an attempt is made.
func (b *book) makes(receiver string, attempt, epoch uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made[receiver] = made{attempt, epoch}
}

type entry struct {
	pending int
	due     time.Time
	// collected is how many notifications wait in digests, the first of which ends at ends.
	collected int
	ends      time.Time
	// attempt is the number of the attempt in flight, 0 if there is none; begins is when the
	// rate of its sink lets it begin; posted is when its result was handed to its lane, and
	// epoch when that was the process's.
	attempt uint64
	begins  time.Time
	posted  time.Time
	epoch   uint64
}

// postedFor is how long a posted result may take to be handled before it is held to
// be lost.
const postedFor = time.Minute

func (b *book) set(receiver string, q Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.made[receiver].attempt == q.Attempt {
		delete(b.made, receiver) // what it was made for is committed
	}
	if q.Pending() == 0 && q.Windows.Open == 0 {
		delete(b.entries, receiver)
		return
	}
	e := entry{pending: q.Pending(), due: q.Due, collected: q.Windows.Items, ends: q.Windows.Due}
	if q.InFlight {
		e.attempt = q.Attempt
		if old := b.entries[receiver]; old.attempt == e.attempt {
			e.begins, e.posted, e.epoch = old.begins, old.posted, old.epoch
		}
	}
	b.entries[receiver] = e
}

// begins notes when the attempt in flight begins.
func (b *book) begins(receiver string, attempt uint64, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.entries[receiver]; ok && e.attempt == attempt {
		e.begins = at
		b.entries[receiver] = e
	}
}

func (b *book) posted(receiver string, attempt uint64, at time.Time, epoch uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.entries[receiver]; ok && e.attempt == attempt {
		e.posted, e.epoch = at, epoch
		b.entries[receiver] = e
	}
}

// lost notes that the result of an attempt went to nobody.
func (b *book) lost(receiver string, attempt uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.entries[receiver]; ok && e.attempt == attempt {
		e.attempt = 0
		b.entries[receiver] = e
	}
}

// knows reports whether this process made the attempt, or makes it with the next commit.
func (b *book) knows(receiver string, attempt, epoch uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[receiver]
	return ok && e.attempt == attempt || b.made[receiver] == made{attempt, epoch}
}

// inFlight reports whether this process made the attempt and its result will come yet. What
// was posted in another epoch does not.
func (b *book) inFlight(receiver string, attempt uint64, now time.Time, epoch uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[receiver]
	if !ok || e.attempt != attempt {
		return b.made[receiver] == made{attempt, epoch} // it begins with the commit
	}
	return e.posted.IsZero() || e.epoch == epoch && now.Sub(e.posted) < postedFor
}

// collecting returns the receivers for which digests are collected.
func (b *book) collecting() (receivers []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for receiver, e := range b.entries {
		if e.collected > 0 {
			receivers = append(receivers, receiver)
		}
	}
	return receivers
}

// waiting counts the pending notifications, without those in digests.
func (b *book) waiting(owned func(receiver string) bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for receiver, e := range b.entries {
		if owned(receiver) {
			n += e.pending
		}
	}
	return n
}

func (b *book) backlog(until time.Time, owned func(receiver string) bool) (due, parked int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for receiver, e := range b.entries {
		if !owned(receiver) {
			continue
		}
		next := e.due
		if e.attempt != 0 {
			next = e.begins
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
