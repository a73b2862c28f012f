//go:build unix

package main

import (
	"slices"
	"testing"
)

func TestWhatNeverHappened(t *testing.T) {
	all := []string{"health_failing", "health_recovered", "outages", "moods", "dooms", "jumps", "reloads", "replays", "backups"}
	for _, c := range []struct {
		kills        int
		did, without []string
		want         []string
	}{
		{kills: 19},
		{kills: 20, want: all[:2]},
		{kills: 25, want: all[:2]},
		{kills: 26, want: all},
		{kills: 26, did: all},
		{kills: 300, did: all[1:], want: all[:1]},
		{kills: 26, did: all[:8], want: all[8:]},
		{kills: 26, without: []string{"expiry", "jumps", "reloads", "replays", "backups"}, want: all[:4]},
		{kills: 26, without: []string{"outages"}, want: all}, // which cannot be left out
	} {
		var did counters
		did.addN("kills", c.kills)
		for _, what := range c.did {
			did.add(what)
		}
		if got := did.missing(c.without); !slices.Equal(got, c.want) {
			t.Errorf("%d kills, without %q: got %q missing, want %q", c.kills, c.without, got, c.want)
		}
	}
}
