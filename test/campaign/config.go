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
