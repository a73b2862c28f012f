package diff

import (
	"cmp"
	"iter"
	"slices"
)

// joinLonely joins units that belong to none with another such unit of the other side:
// one with which it shares a token that is in no other of them, where at least half of
// the larger one's tokens are common; of several the one with most in common, then the
// first. Each unit of either side chooses for itself.
func (c *comparison) joinLonely(f *forest, old, new [][]int32) {
	// owner is the only lonely unit of a side that has a symbol; several is no owner.
	const none, several = -1, -2
	owners := make(map[int32][2]int)
	note := func(bags [][]int32, side, offset int) {
		for i, bag := range bags {
			if f.joined[offset+i] {
				continue
			}
			for x := range counted(bag) {
				o, ok := owners[x]
				if !ok {
					o = [2]int{none, none}
				}
				if o[side] == none {
					o[side] = i
				} else {
					o[side] = several
				}
				owners[x] = o
			}
		}
	}
	note(old, 0, 0)
	note(new, 1, len(old))

	var candidates [][2]int
	for _, o := range owners {
		if o[0] >= 0 && o[1] >= 0 {
			n, m := len(old[o[0]]), len(new[o[1]])
			if 2*min(n, m) >= max(n, m) { // else half of the larger cannot be common
				candidates = append(candidates, o)
			}
		}
	}
	slices.SortFunc(candidates, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	candidates = slices.Compact(candidates)

	type choice struct{ unit, common int }
	bestOld, bestNew := make(map[int]choice), make(map[int]choice)
	left := c.limits.grouping
	for _, o := range candidates {
		a, b := old[o[0]], new[o[1]]
		if left -= int64(len(a) + len(b)); left < 0 {
			break
		}
		n := common(a, b)
		if 2*n < max(len(a), len(b)) {
			continue
		}
		// Candidates come in order, so the first of equals stays.
		if n > bestOld[o[0]].common {
			bestOld[o[0]] = choice{o[1], n}
		}
		if n > bestNew[o[1]].common {
			bestNew[o[1]] = choice{o[0], n}
		}
	}
	c.spent += c.limits.grouping - max(left, 0)
	for i, b := range bestOld {
		f.join(i, len(old)+b.unit)
	}
	for j, b := range bestNew {
		f.join(b.unit, len(old)+j)
	}
}

// eachShare calls f for each old and new unit that have tokens in common, with how many,
// counted with repeats: the way to group what is too much to diff. Tokens that are in so
// many units that counting them all would be too much work as well are left out, the
// most frequent first.
func (c *comparison) eachShare(old, new [][]int32, f func(i, j, common int)) {
	type posting struct{ unit, n int }
	postings := make(map[int32][]posting)
	for j, bag := range new {
		for x, n := range counted(bag) {
			postings[x] = append(postings[x], posting{j, n})
		}
	}
	cost := make(map[int32]int64)
	for _, bag := range old {
		for x := range counted(bag) {
			if p := postings[x]; len(p) > 0 {
				cost[x] += int64(len(p))
			}
		}
	}
	order := make([]int32, 0, len(cost))
	for x := range cost {
		order = append(order, x)
	}
	slices.SortFunc(order, func(x, y int32) int { return cmp.Or(cmp.Compare(cost[x], cost[y]), cmp.Compare(x, y)) })
	left := c.limits.grouping
	for _, x := range order {
		if left -= cost[x]; left < 0 {
			delete(postings, x)
			continue
		}
		c.spent += cost[x]
	}

	counts := make([]int, len(new))
	for i, bag := range old {
		var met []int
		for x, n := range counted(bag) {
			for _, p := range postings[x] {
				if counts[p.unit] == 0 {
					met = append(met, p.unit)
				}
				counts[p.unit] += min(n, p.n)
			}
		}
		for _, j := range met {
			f(i, j, counts[j])
			counts[j] = 0
		}
	}
}

// counted iterates over the distinct symbols of a sorted bag and how often each is in it.
func counted(bag []int32) iter.Seq2[int32, int] {
	return func(yield func(int32, int) bool) {
		for i := 0; i < len(bag); {
			j := i + 1
			for j < len(bag) && bag[j] == bag[i] {
				j++
			}
			if !yield(bag[i], j-i) {
				return
			}
			i = j
		}
	}
}
