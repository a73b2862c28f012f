package restless

import "slices"

// stretch is where two texts differ in more than numbers: the blocks [a, b) of the older one became the blocks
// [c, d) of the newer one. Either may be empty.
type stretch struct{ a, b, c, d int }

// alignDepth is how often a stretch is cut at the blocks that only it has on both sides.
const alignDepth = 8

// maxTable is how large the table of commonOf may get.
const maxTable = 1 << 14

// stretches aligns the blocks of both texts. What differs in numbers alone counts as equal.
func (c *comparison) stretches() []stretch {
	shapes := func(t *Text, end int) []uint64 {
		all := make([]uint64, end-c.first)
		for i := range all {
			all[i] = t.block(c.first + i).Shape
		}
		return all
	}
	olds, news := shapes(c.old, c.oldEnd), shapes(c.new, c.newEnd)
	return align(nil, olds, news, c.first, c.first, alignDepth)
}

// align appends the stretches in which a, the shapes from block i on, and b, those from block k on, differ.
func align(all []stretch, a, b []uint64, i, k, depth int) []stretch {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b, i, k = a[1:], b[1:], i+1, k+1
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 && len(b) == 0 {
		return all
	}
	anchors := anchorsOf(a, b)
	if len(anchors) == 0 && len(a)*len(b) <= maxTable {
		anchors = commonOf(a, b)
	}
	if len(anchors) == 0 || depth == 0 {
		return append(all, stretch{i, i + len(a), k, k + len(b)})
	}
	x, y := 0, 0
	for _, at := range anchors {
		all = align(all, a[x:at[0]], b[y:at[1]], i+x, k+y, depth-1)
		x, y = at[0]+1, at[1]+1
	}
	return align(all, a[x:], b[y:], i+x, k+y, depth-1)
}

// anchorsOf returns the positions of blocks that a and b have once each, as many of them as stand in the same order in
// both.
func anchorsOf(a, b []uint64) [][2]int {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	const none, several = -1, -2
	at := make(map[uint64][2]int, len(a))
	for i, s := range a {
		if _, ok := at[s]; ok {
			at[s] = [2]int{several, none}
		} else {
			at[s] = [2]int{i, none}
		}
	}
	for k, s := range b {
		switch x, ok := at[s]; {
		case !ok:
		case x[1] == none:
			at[s] = [2]int{x[0], k}
		default:
			at[s] = [2]int{several, several}
		}
	}
	var pairs [][2]int
	for _, s := range a {
		if x := at[s]; x[0] >= 0 && x[1] >= 0 {
			pairs = append(pairs, x)
		}
	}
	// The longest ascending run of positions in b.
	var tops []int // tops[n] is the last pair of the best run of n+1 pairs
	before := make([]int, len(pairs))
	for p := range pairs {
		n, _ := slices.BinarySearchFunc(tops, pairs[p][1], func(q, k int) int { return pairs[q][1] - k })
		before[p] = -1
		if n > 0 {
			before[p] = tops[n-1]
		}
		tops = append(tops[:n], append([]int{p}, tops[min(n+1, len(tops)):]...)...)
	}
	if len(tops) == 0 {
		return nil
	}
	var run [][2]int
	for p := tops[len(tops)-1]; p >= 0; p = before[p] {
		run = append(run, pairs[p])
	}
	slices.Reverse(run)
	return run
}

// commonOf returns the positions of a longest common subsequence of a and b.
func commonOf(a, b []uint64) (pairs [][2]int) {
	width := len(b) + 1
	best := make([]int16, (len(a)+1)*width) // of a[i:] and b[k:]
	for i := len(a) - 1; i >= 0; i-- {
		for k := len(b) - 1; k >= 0; k-- {
			if best[i*width+k] = max(best[(i+1)*width+k], best[i*width+k+1]); a[i] == b[k] {
				best[i*width+k] = best[(i+1)*width+k+1] + 1
			}
		}
	}
	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch {
		case a[i] == b[k]:
			pairs = append(pairs, [2]int{i, k})
			i, k = i+1, k+1
		case best[(i+1)*width+k] >= best[i*width+k+1]:
			i++
		default:
			k++
		}
	}
	return pairs
}
