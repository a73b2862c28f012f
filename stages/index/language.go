package index

import "github.com/cespare/xxhash/v2"

// buckets is how many counters mostlyNew tallies words in. Words that share one can make
// two texts look more alike than they are, never less.
const buckets = 4096

// mostlyNew estimates whether more than 30 % of the words of old and new are not common
// to both: reason enough to detect the language anew.
func mostlyNew(old, new string) bool {
	var tally [buckets]int32
	words := 0
	for _, side := range []struct {
		text string
		n    int32
	}{{old, -1}, {new, 1}} {
		start := -1
		for i := 0; i <= len(side.text); i++ {
			if i < len(side.text) && side.text[i] > ' ' {
				if start < 0 {
					start = i
				}
				continue
			}
			if start >= 0 {
				tally[xxhash.Sum64String(side.text[start:i])%buckets] += side.n
				words++
				start = -1
			}
		}
	}
	differ := 0
	for _, n := range tally {
		differ += int(max(n, -n))
	}
	return differ*10 > words*3
}
