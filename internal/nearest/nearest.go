// Package nearest finds the known name that an unknown one was probably meant to be.
package nearest

import (
	"fmt"
	"slices"
	"strings"
)

// Name returns the one of known that is the fewest edits (a rune inserted, deleted,
// replaced, or two neighbours swapped) away from name, regardless of case, and that
// number; the first in alphabetical order if there are several. It returns "" and 0 if
// nothing is known.
func Name(name string, known []string) (string, int) {
	best, least := "", 0
	for i, k := range slices.Sorted(slices.Values(known)) {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); i == 0 || d < least {
			best, least = k, d
		}
	}
	return best, least
}

// Likely reports whether name is probably a misspelling of k.
func Likely(name, k string) bool {
	if name == "" || k == "" {
		return false
	}
	return distance(strings.ToLower(name), strings.ToLower(k)) <= max(1, len([]rune(k))/3) ||
		strings.HasPrefix(k, name) || strings.HasPrefix(name, k)
}

// Hint says in words what may have been meant: a question where it is likely, the
// nearest and all known names otherwise.
func Hint(name string, known []string) string {
	k, _ := Name(name, known)
	switch {
	case k == "":
		return "none is known here"
	case Likely(name, k):
		return fmt.Sprintf("did you mean %q?", k)
	case len(known) == 1:
		return fmt.Sprintf("the only known one is %q", k)
	}
	return fmt.Sprintf("the nearest known one is %q (known: %s)", k, strings.Join(slices.Sorted(slices.Values(known)), ", "))
}

// distance is the optimal string alignment distance.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	if len(s) > 100 || len(t) > 100 { // no name is that long; the work stays bounded
		return max(len(s), len(t))
	}
	before, prev := make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range s {
		row := make([]int, len(t)+1)
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, prev[j+1]+1, prev[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(t)]
}
