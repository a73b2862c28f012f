package diff

import (
	"cmp"
	"slices"
)

// set is a group as units of both sides, in order.
type set struct {
	old, new []int
	moved    bool
}

// sets returns the groups of the two texts, in document order: by their first new unit,
// and those that only went behind the pair they stood behind. p are the texts' pairs.
func (c *comparison) sets(p pairs) []set {
	var out []set
	for o, u := range p.of {
		if u < 0 {
			continue
		}
		same := c.sameTokens(o, u)
		if !same || !p.inOrder[o] {
			out = append(out, set{old: []int{o}, new: []int{u}, moved: same})
		}
	}
	out = append(out, c.groupRest(p.restOld, p.restNew)...)

	behind := make([]int, len(p.of))
	last := -1
	for o, u := range p.of {
		if p.inOrder[o] {
			last = u
		}
		behind[o] = last
	}
	place := func(s set) [3]int {
		if len(s.new) > 0 {
			return [3]int{s.new[0], 0, 0}
		}
		return [3]int{behind[s.old[0]], 1, s.old[0]}
	}
	slices.SortFunc(out, func(a, b set) int {
		pa, pb := place(a), place(b)
		return slices.Compare(pa[:], pb[:])
	})
	return out
}

// sameTokens reports whether the exact tokens of an old and a new unit are equal.
func (c *comparison) sameTokens(o, u int) bool {
	return unitText(c.old, o) == unitText(c.new, u) ||
		slices.Equal(c.symbols.sequence(c.old, []int{o}, exact).symbols, c.symbols.sequence(c.new, []int{u}, exact).symbols)
}

// groupRest groups the units that have no pair.
func (c *comparison) groupRest(old, new []int) []set {
	f := newForest(len(old) + len(new)) // new unit j is element len(old)+j
	if len(old) > 0 && len(new) > 0 {
		a, b := c.symbols.sequence(c.old, old, folded), c.symbols.sequence(c.new, new, folded)
		bagsA, bagsB := bags(a, len(old)), bags(b, len(new))
		w := work{left: c.limits.grouping}
		kept, shortest := w.align(a.symbols, b.symbols, c.limits.grouping, true)
		c.spent += w.spent
		if shortest {
			for at, n := range keptBetween(a, b, kept) {
				if belong(n, len(bagsA[at[0]]), len(bagsB[at[1]])) {
					f.join(at[0], len(old)+at[1])
				}
			}
		} else {
			c.eachShare(bagsA, bagsB, func(i, j, common int) {
				if belong(common, len(bagsA[i]), len(bagsB[j])) {
					f.join(i, len(old)+j)
				}
			})
		}
		c.joinLonely(f, bagsA, bagsB)
	}

	index := make(map[int]int)
	var out []set
	at := func(e int) *set {
		root := f.find(e)
		k, ok := index[root]
		if !ok {
			k = len(out)
			index[root] = k
			out = append(out, set{})
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

// keptBetween counts the tokens that a diff keeps between each old and new unit.
func keptBetween(a, b sequence, kept []run) map[[2]int]int {
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

// belong reports whether two units of n and m tokens belong together that have kept of
// them in common: at least half of the smaller one, which is at least a quarter as
// long as the larger, or five.
func belong(kept, n, m int) bool {
	small, large := min(n, m), max(n, m)
	return 2*kept >= small && (4*small >= large || kept >= 5)
}

// forest is a union of sets of the numbers 0 to n-1.
type forest struct {
	parent []int
	joined []bool
}

func newForest(n int) *forest {
	f := &forest{parent: make([]int, n), joined: make([]bool, n)}
	for i := range f.parent {
		f.parent[i] = i
	}
	return f
}

func (f *forest) find(x int) int {
	for f.parent[x] != x {
		f.parent[x] = f.parent[f.parent[x]]
		x = f.parent[x]
	}
	return x
}

func (f *forest) join(x, y int) {
	f.joined[x], f.joined[y] = true, true
	f.parent[f.find(x)] = f.find(y)
}

// bags returns the token symbols of each of a sequence's n units, sorted.
func bags(q sequence, n int) [][]int32 {
	out := make([][]int32, n)
	for _, b := range q.blocks {
		out[b.unit] = append(out[b.unit], q.symbols[b.first:b.last]...)
	}
	for _, bag := range out {
		slices.Sort(bag)
	}
	return out
}

// common is how many symbols two bags share, counted with repeats.
func common(a, b []int32) int {
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
