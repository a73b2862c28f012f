//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// wantedClients are the clients that the configuration subscribes, by page.
type wantedClients []map[string]bool

// writeConfig writes the configuration in one step. Entries that are there before and after
// ask for another interval each time: what is changed keeps its subscription. It begins with
// what transport says.
func writeConfig(path string, p *pageServer, b *inbox, w wantedClients, clients []string, interval time.Duration, transport string) error {
	var s strings.Builder
	s.WriteString(transport)
	s.WriteString("listen: 127.0.0.1:0\n")
	s.WriteString("allow: {fetch: [127.0.0.1/32], sinks: [127.0.0.1/32]}\n")
	s.WriteString("fetch: {timeout: 5s, per_host: {concurrency: 16, rate: 1000/s}}\n")
	// Clocks jump by days: a page that is given up is given up at once, and no receiver is.
	s.WriteString("expire: {retry: never}\n")
	s.WriteString("delivery: {retry: [50ms], dead_after: 9000h, expire_after: 9000h}\nsinks:\n")
	for _, c := range append([]string{ownerClient}, clients...) {
		fmt.Fprintf(&s, "  hook-%s: {webhook: {url: %q}}\n", c, b.url(c))
	}
	s.WriteString("health: [hook-" + ownerClient + "]\nsubscriptions:\n")
	for n := range w {
		every := interval
		if canExpire(n) { // a changed entry would begin a page anew that was given up
			every = time.Minute
		}
		for _, c := range clients {
			if w[n][c] {
				fmt.Fprintf(&s, "  - {url: %q, client: %s, keywords: [marker], interval: %s, sinks: [hook-%s]%s}\n",
					p.url(n), c, every, c, digestField(c, n))
			}
		}
	}
	next := filepath.Join(filepath.Dir(path), ".campaign.yaml")
	if err := os.WriteFile(next, []byte(s.String()), 0o600); err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	return os.Rename(next, path)
}

// digestField returns the field digest of a subscription in the configuration; it is empty for clients without one.
func digestField(client string, page int) string {
	switch {
	case client == "bob":
		return ", digest: 1s"
	case client == pickyClient && page%2 == 0, client == guestClient && page%3 == 0:
		return ", digest: {every: 2s, max: 3}"
	}
	return ""
}

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
