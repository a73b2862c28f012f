package diff

import (
	"cmp"
	"iter"
	"slices"
)

// unitGroup is a group in the making: units of both sides, in order.
type unitGroup struct {
	old, new []int
	// moved says that the words are the same at another place. unchanged says that they did not move
	// either.
	moved, unchanged bool
	// precedingUnit is the new unit behind which the old units of a group without new units were, or
	// -1.
	precedingUnit int
}

// groupUnits returns the groups of the two texts in document order: by their first new unit, or if
// they have none, after the pair that precedes them in the old text. p are the texts' pairs.
func (c *comparison) groupUnits(p unitPairs) []unitGroup {
	var out []unitGroup
	for o, u := range p.newUnit {
		if u < 0 {
			continue
		}
		same := c.sameTokens(o, u)
		if !same || !p.inOrder[o] {
			out = append(out, unitGroup{old: []int{o}, new: []int{u}, moved: same})
		}
	}
	out = append(out, c.groupUnpaired(p.unpairedOld, p.unpairedNew)...)

	behind := make([]int, len(p.newUnit))
	last := -1
	for o, u := range p.newUnit {
		if p.inOrder[o] {
			last = u
		}
		behind[o] = last
	}
	for i, s := range out {
		if len(s.new) == 0 {
			out[i].precedingUnit = behind[s.old[0]]
		}
	}
	place := func(s unitGroup) [3]int {
		if len(s.new) > 0 {
			return [3]int{s.new[0], 0, 0}
		}
		return [3]int{s.precedingUnit, 1, s.old[0]}
	}
	slices.SortFunc(out, func(a, b unitGroup) int {
		pa, pb := place(a), place(b)
		return slices.Compare(pa[:], pb[:])
	})
	return out
}

// replacesPrevious reports whether sets[i] is one new unit in place of one old unit, sets[i-1], with
// which it has too little in common for one group.
func replacesPrevious(sets []unitGroup, i int) bool {
	lone := func(units, others []int) bool { return len(units) == 1 && len(others) == 0 }
	old, new := sets[i-1], sets[i]
	if !lone(old.old, old.new) || !lone(new.new, new.old) || old.precedingUnit+1 != new.new[0] {
		return false
	}
	severalOld := i > 1 && len(sets[i-2].new) == 0 && sets[i-2].precedingUnit == old.precedingUnit
	severalNew := i+1 < len(sets) && len(sets[i+1].old) == 0 && sets[i+1].new[0] == new.new[0]+1
	return !severalOld && !severalNew
}

// sameTokens reports whether the exact tokens of an old and a new unit are equal.
func (c *comparison) sameTokens(o, u int) bool {
	return unitText(c.old, o) == unitText(c.new, u) ||
		slices.Equal(c.symbols.newSequence(c.old, []int{o}, exactForm).symbols, c.symbols.newSequence(c.new, []int{u}, exactForm).symbols)
}

// groupUnpaired groups the units that have no pair.
func (c *comparison) groupUnpaired(old, new []int) []unitGroup {
	f := newUnionFind(len(old) + len(new)) // new unit j is element len(old)+j
	if len(old) > 0 && len(new) > 0 {
		a, b := c.symbols.newSequence(c.old, old, foldedForm), c.symbols.newSequence(c.new, new, foldedForm)
		bagsA, bagsB := tokenBags(a, len(old)), tokenBags(b, len(new))
		w := aligner{cellsLeft: c.limits.grouping}
		kept, shortest := w.align(a.symbols, b.symbols, c.limits.grouping, true)
		c.cellsSpent += w.cellsSpent
		if shortest {
			for at, n := range countKeptBetween(a, b, kept) {
				if belongTogether(n, len(bagsA[at[0]]), len(bagsB[at[1]])) {
					f.join(at[0], len(old)+at[1])
				}
			}
		} else {
			c.eachPairSharingTokens(bagsA, bagsB, func(i, j, common int) {
				if belongTogether(common, len(bagsA[i]), len(bagsB[j])) {
					f.join(i, len(old)+j)
				}
			})
		}
		c.joinUngrouped(f, bagsA, bagsB)
	}

	index := make(map[int]int)
	var out []unitGroup
	at := func(e int) *unitGroup {
		root := f.find(e)
		k, ok := index[root]
		if !ok {
			k = len(out)
			index[root] = k
			out = append(out, unitGroup{})
		}
		return &out[k]
	}
	for i, o := range old {
		s := at(i)
		s.old = append(s.old, o)
	}
	for j, u := range new {
		s := at(len(old) + j)
		s.new = append(s.new, u)
	}
	return out
}

// countKeptBetween counts the tokens that a diff keeps between each old and new unit.
func countKeptBetween(a, b sequence, kept []run) map[[2]int]int {
	n := make(map[[2]int]int)
	i, j := 0, 0 // the present blocks
	for _, r := range kept {
		for k := range r.n {
			x, y := r.a+k, r.b+k
			if a.symbols[x] == border {
				continue
			}
			for a.blocks[i].last < x {
				i++
			}
			for b.blocks[j].last < y {
				j++
			}
			n[[2]int{a.blocks[i].unit, b.blocks[j].unit}]++
		}
	}
	return n
}

// belongTogether reports whether two units of n and m tokens belong together, given that they have kept
// tokens in common. These must be at least half of the smaller unit, and either five or more,
// or the smaller unit at least a quarter as long as the larger.
func belongTogether(kept, n, m int) bool {
	small, large := min(n, m), max(n, m)
	return 2*kept >= small && (4*small >= large || kept >= 5)
}

// unionFind is a union-find structure over the numbers 0 to n-1.
type unionFind struct {
	parent []int
	joined []bool
}

func newUnionFind(n int) *unionFind {
	f := &unionFind{parent: make([]int, n), joined: make([]bool, n)}
	for i := range f.parent {
		f.parent[i] = i
	}
	return f
}

// find returns the representative of the set of x.
func (f *unionFind) find(x int) int {
	for f.parent[x] != x {
		f.parent[x] = f.parent[f.parent[x]]
		x = f.parent[x]
	}
	return x
}

// join unites the sets of x and y.
func (f *unionFind) join(x, y int) {
	f.joined[x], f.joined[y] = true, true
	f.parent[f.find(x)] = f.find(y)
}

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

// countCommon is how many symbols two bags share, counting repeats.
func countCommon(a, b []int32) int {
	n := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch cmp.Compare(a[i], b[j]) {
		case -1:
			i++
		case 1:
			j++
		default:
			n, i, j = n+1, i+1, j+1
		}
	}
	return n
}

// joinUngrouped joins units that belong to no group with such a unit of the other side. Both must
// share a token that no other such unit has, and at least half of the tokens of the larger one.
// Each unit of either side chooses the one with most tokens in common, and of several the
// first.
func (c *comparison) joinUngrouped(f *unionFind, old, new [][]int32) {
	// owners holds, for each symbol and side, the only lonely unit that has it, or none or
	// several.
	const none, several = -1, -2
	owners := make(map[int32][2]int)
	note := func(bags [][]int32, side, offset int) {
		for i, bag := range bags {
			if f.joined[offset+i] {
				continue
			}
			for x := range eachDistinct(bag) {
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
		n := countCommon(a, b)
		if 2*n < max(len(a), len(b)) {
			continue
		}
		// Candidates are sorted, so the first of equals wins.
		if n > bestOld[o[0]].common {
			bestOld[o[0]] = choice{o[1], n}
		}
		if n > bestNew[o[1]].common {
			bestNew[o[1]] = choice{o[0], n}
		}
	}
	c.cellsSpent += c.limits.grouping - max(left, 0)
	for i, b := range bestOld {
		f.join(i, len(old)+b.unit)
	}
	for j, b := range bestNew {
		f.join(b.unit, len(old)+j)
	}
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
