package main

import (
	"fmt"
	"time"
)

// ledger records who was subscribed when, by client and page.
type ledger map[string]map[int][]*period

// period is one subscription of a client to a page.
type period struct {
	// taken is the last version that the watcher was known to have when the subscription was
	// requested. The subscription is notified only of later versions.
	taken int
	// stood is the version of the page when the subscription was known to exist. Later versions
	// must be notified. It is 0 if that is not known.
	stood int
	// asked is when the cancel was requested, ended when it was known to be done. Versions
	// after ended must not be notified.
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

// begin records that a subscription is requested.
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

// settled reports whether it is known that p exists, or that it ended.
func (p *period) settled() bool {
	return p.open() && p.stood > 0 || !p.open() && !p.ended.IsZero()
}

// hears reports whether p may be notified of a version that appeared at that time.
func (p *period) hears(version int, born time.Time) bool {
	return version > p.taken && (p.ended.IsZero() || born.Before(p.ended))
}
