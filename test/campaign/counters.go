//go:build unix

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// counters counts what a campaign did.
type counters struct {
	mu sync.Mutex
	n  map[string]int
}

func (t *counters) add(what string) { t.addN(what, 1) }

func (t *counters) addN(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]int{}
	}
	t.n[what] += n
}

// From so many kills on each of a kind must have happened, or nothing was tested of it.
const (
	killsForHealth = 20
	killsForAll    = 26
)

// missing returns what must have happened and did not. What without names need not have happened.
func (t *counters) missing(without []string) (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, must := range []struct {
		what    string
		kills   int
		leftOut string // by what name
	}{
		{"health_failing", killsForHealth, ""}, {"health_recovered", killsForHealth, ""},
		{"outages", killsForAll, ""}, {"moods", killsForAll, ""}, {"dooms", killsForAll, "expiry"}, {"jumps", killsForAll, "jumps"},
		{"reloads", killsForAll, "reloads"}, {"replays", killsForAll, "replays"}, {"backups", killsForAll, "backups"},
	} {
		if t.n["kills"] >= must.kills && t.n[must.what] == 0 && !slices.Contains(without, must.leftOut) {
			names = append(names, must.what)
		}
	}
	return names
}

// String lists all, in order of their names.
func (t *counters) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(t.n)) {
		parts = append(parts, fmt.Sprintf("%s=%d", what, t.n[what]))
	}
	return strings.Join(parts, " ")
}
