// Package nearest finds the known name that a misspelled one was probably meant to be.
package nearest

import (
	"fmt"
	"slices"
	"strings"
)

// Name returns the known name that is the fewest edits away from name, and their number. An
// edit inserts, deletes or replaces a rune, or swaps two neighbours; case does not count. Of
// several such names it returns the first in alphabetical order, and "" and 0 if known is empty.
func Name(name string, known []string) (string, int) {
	best, least := "", 0
	for i, k := range slices.Sorted(slices.Values(known)) {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); i == 0 || d < least {
			best, least = k, d
		}
	}
	return best, least
}

// Likely reports whether name is probably a misspelling of k: at most a third of the letters
// differ, or one is a prefix of the other.
func Likely(name, k string) bool {
	name, k = strings.ToLower(name), strings.ToLower(k)
	shorter, longer := len([]rune(name)), len([]rune(k))
	if shorter > longer {
		shorter, longer = longer, shorter
	}
	if shorter == 0 {
		return false
	}
	if d := distance(name, k); d < shorter && d <= max(1, longer/3) {
		return true
	}
	return shorter >= leastPrefix && (strings.HasPrefix(k, name) || strings.HasPrefix(name, k))
}

// leastPrefix is how long a prefix must be to count.
const leastPrefix = 3

// maxListed is how many known names a hint lists at most.
const maxListed = 30

// Hint returns the end of an error message about an unknown name: the nearest known name as a
// question if that is likely, otherwise the known names, at most 30 of them. It says so where a
// known option such as match_case is the opposite of name.
func Hint(name string, known []string) string {
	k, _ := Name(name, known)
	opposite := strings.Replace(name, "ignore", "match", 1)
	switch {
	case k == "":
		return "there are none"
	case opposite != name && slices.Contains(known, opposite):
		return fmt.Sprintf("that is the default, and %q turns it off", opposite)
	case Likely(name, k):
		return fmt.Sprintf("did you mean %q?", k)
	case len(known) == 1:
		return fmt.Sprintf("the only known one is %q", k)
	}
	sorted, more := slices.Sorted(slices.Values(known)), ""
	if n := len(sorted) - maxListed; n > 0 {
		sorted, more = sorted[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	return "known are " + strings.Join(sorted, ", ") + more
}

// distance returns the optimal string alignment distance.
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
