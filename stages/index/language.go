package index

// buckets is how many counters mostlyNew tallies words in. Words that share one can make
// two texts look more alike than they are, never less.
const buckets = 4096

// mostlyNew estimates whether more than 30 % of the words of old and new are not common
// to both: reason enough to detect the language anew.
func mostlyNew(old, new string) bool {
	var t [buckets]int32
	words := tally(&t, old, -1) + tally(&t, new, 1)
	differ := 0
	for _, n := range t {
		differ += int(max(n, -n))
	}
	return differ*10 > words*3
}

// tally adds n for every word of s, told apart by white space and marks, and returns how
// many there are.
func tally(t *[buckets]int32, s string, n int32) int {
	const offset, prime = 2166136261, 16777619 // FNV-1a
	words := 0
	h := uint32(offset)
	for i := range len(s) {
		if c := s[i]; c > ' ' {
			h = (h ^ uint32(c)) * prime
			continue
		}
		if h != offset {
			t[(h^h>>16)%buckets] += n
			words++
			h = offset
		}
	}
	if h != offset {
		t[(h^h>>16)%buckets] += n
		words++
	}
	return words
}
