package diff

import (
	"cmp"
	"iter"
	"slices"
)

// tokenBags returns, for each of a sequence's n units, the sorted symbols of its tokens.
func tokenBags(q sequence, n int) [][]int32 {
	out := make([][]int32, n)
	for _, b := range q.blocks {
		out[b.unit] = append(out[b.unit], q.symbols[b.first:b.last]...)
	}
	for _, bag := range out {
		slices.Sort(bag)
	}
	return out
}

// eachPairSharingTokens calls f for each pair of old and new units that have tokens in common, with their
// number, counting repeats. It serves to group units that are too large to diff. If even that
// would be too much work, it ignores the most frequent tokens.
func (c *comparison) eachPairSharingTokens(old, new [][]int32, f func(i, j, common int)) {
	type posting struct{ unit, n int }
	postings := make(map[int32][]posting)
	for j, bag := range new {
		for x, n := range eachDistinct(bag) {
			postings[x] = append(postings[x], posting{j, n})
		}
	}
	cost := make(map[int32]int64)
	for _, bag := range old {
		for x := range eachDistinct(bag) {
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
		c.cellsSpent += cost[x]
	}

	counts := make([]int, len(new))
	for i, bag := range old {
		var met []int
		for x, n := range eachDistinct(bag) {
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

// eachDistinct iterates over the distinct symbols of a sorted bag and the number of each.
func eachDistinct(bag []int32) iter.Seq2[int32, int] {
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
