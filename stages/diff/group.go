package diff

import "slices"

// unitGroup is a group in the making: units of both sides, in order.
type unitGroup struct {
	old, new []int
	// moved says that the words are the same at another place. unchanged says that they did not move
	// either.
	moved, unchanged bool
	// precedingUnit is the new unit behind which the old units of a group without new units were, or
	// -1.
	precedingUnit int
	// part says that the group is a part of a long item of which more is in both texts.
	part bool
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
	out = append(out, c.groupUnpaired(p)...)

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

// sameTokens reports whether the exact tokens of an old and a new unit are equal.
func (c *comparison) sameTokens(o, u int) bool {
	return unitText(c.old, o) == unitText(c.new, u) ||
		slices.Equal(c.symbols.newSequence(c.old, []int{o}, exactForm).symbols, c.symbols.newSequence(c.new, []int{u}, exactForm).symbols)
}

// groupUnpaired groups the units that have no pair.
func (c *comparison) groupUnpaired(p unitPairs) []unitGroup {
	old, new := p.unpairedOld, p.unpairedNew
	f := newUnionFind(len(old) + len(new)) // new unit j is element len(old)+j
	if len(old) > 0 && len(new) > 0 {
		c.relate(p, f)
	}
	long := c.findLongParts(old, new, f)

	index := make(map[int]int)
	var out []unitGroup
	at := func(e int) *unitGroup {
		root := f.find(e)
		if of := long.whole[e]; of >= 0 {
			root = len(long.whole) + of
		}
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
		s.old, s.part = append(s.old, o), long.part[i]
	}
	for j, u := range new {
		s := at(len(old) + j)
		s.new, s.part = append(s.new, u), long.part[len(old)+j]
	}
	return out
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
