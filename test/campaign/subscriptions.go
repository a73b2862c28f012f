//go:build unix

package main

import (
	"fmt"
	"time"
)

// subscriptionHistory records who was subscribed when, by client and page.
type subscriptionHistory map[string]map[int][]*subscriptionPeriod

// subscriptionPeriod is one subscription of a client to a page.
type subscriptionPeriod struct {
	// afterVersion is the last version that the watcher was known to have when the subscription was
	// requested. The subscription is notified only of later versions.
	afterVersion int
	// requestedAt is when the subscription was requested.
	requestedAt time.Time
	// knownAtVersion is the version of the page when the subscription was known to exist. Later versions
	// must be notified. It is 0 if that is not known.
	knownAtVersion int
	// cancelledAt is when the cancel was requested, endedAt when it was known to be done. Versions
	// after endedAt must not be notified.
	cancelledAt, endedAt time.Time
}

func (p *subscriptionPeriod) String() string {
	s := fmt.Sprintf("behind %d, stood at %d", p.afterVersion, p.knownAtVersion)
	if !p.cancelledAt.IsZero() {
		s += fmt.Sprintf(", cancelled at %s to %s", p.cancelledAt.Format(clockTime), p.endedAt.Format(clockTime))
	}
	return s
}

// clockTime is how times of day are shown.
const clockTime = "15:04:05.000"

// add records that a subscription is requested.
func (l subscriptionHistory) add(client string, page, taken int) *subscriptionPeriod {
	if l[client] == nil {
		l[client] = map[int][]*subscriptionPeriod{}
	}
	p := &subscriptionPeriod{afterVersion: taken, requestedAt: time.Now()}
	l[client][page] = append(l[client][page], p)
	return p
}

// last returns the latest period of a pair, or nil.
func (l subscriptionHistory) last(client string, page int) *subscriptionPeriod {
	ps := l[client][page]
	if len(ps) == 0 {
		return nil
	}
	return ps[len(ps)-1]
}

// isOpen reports whether p was not cancelled.
func (p *subscriptionPeriod) isOpen() bool { return p != nil && p.cancelledAt.IsZero() }

// isSettled reports whether it is known that p became active or, after a cancel, that it ended.
func (p *subscriptionPeriod) isSettled() bool {
	return p.isOpen() && p.knownAtVersion > 0 || !p.isOpen() && !p.endedAt.IsZero()
}

// covers reports whether p may be notified of a version that appeared at that time.
func (p *subscriptionPeriod) covers(version int, born time.Time) bool {
	return version > p.afterVersion && (p.endedAt.IsZero() || born.Before(p.endedAt))
}
