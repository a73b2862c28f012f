package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// tally counts what a campaign did.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (t *tally) add(what string) { t.plus(what, 1) }

func (t *tally) plus(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]int{}
	}
	t.n[what] += n
}

// String lists all, in order of their names.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(t.n)) {
		parts = append(parts, fmt.Sprintf("%s=%d", what, t.n[what]))
	}
	return strings.Join(parts, " ")
}
