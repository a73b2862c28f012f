package main

import (
	"fmt"
	"time"
)

// ledger is what is known of who was subscribed when, by client and page.
type ledger map[string]map[int][]*period

// period is one subscription of a client to a page.
type period struct {
	// taken is the last version that the watcher was known to hold when the subscription was
	// asked for: nothing up to it is told.
	taken int
	// stood is the version that the page showed when the subscription was known to stand,
	// whose successors must be told; 0 where that is not known.
	stood int
	// asked and ended are when the end was asked for, and when it was known to stand: what
	// is new after that must not be told.
	asked, ended time.Time
}

func (p *period) String() string {
	s := fmt.Sprintf("behind %d, stood at %d", p.taken, p.stood)
	if !p.asked.IsZero() {
		s += fmt.Sprintf(", cancelled at %s to %s", p.asked.Format(clockTime), p.ended.Format(clockTime))
	}
	return s
}

// clockTime is how times of day are shown.
const clockTime = "15:04:05.000"

// begin notes that a subscription is asked for.
func (l ledger) begin(client string, page, taken int) *period {
	if l[client] == nil {
		l[client] = map[int][]*period{}
	}
	p := &period{taken: taken}
	l[client][page] = append(l[client][page], p)
	return p
}

// last returns the latest period of a pair, or nil.
func (l ledger) last(client string, page int) *period {
	ps := l[client][page]
	if len(ps) == 0 {
		return nil
	}
	return ps[len(ps)-1]
}

// open reports whether p was not asked to end.
func (p *period) open() bool { return p != nil && p.asked.IsZero() }

// settled reports whether it is known that p stands, or that it ended.
func (p *period) settled() bool {
	return p.open() && p.stood > 0 || !p.open() && !p.ended.IsZero()
}

// hears reports whether the version of a page that was born at that time may be told.
func (p *period) hears(version int, born time.Time) bool {
	return version > p.taken && (p.ended.IsZero() || born.Before(p.ended))
}
