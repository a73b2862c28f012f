package diff

import (
	"slices"

	"github.com/vokter/vokter/pipeline/text"
)

// pairs says which units pair off: those with equal folded tokens and borders.
type pairs struct {
	// of[o] is the new unit that the old unit o pairs with, or -1.
	of []int
	// inOrder[o] says that the diff of the units kept o; o moved where it has a
	// pair and is not kept.
	inOrder []bool
	// restOld and restNew are the units without a pair, in order.
	restOld, restNew []int
}

// pairUnits pairs off equal units.
func (c *comparison) pairUnits() pairs {
	n, m := len(c.old.Units), len(c.new.Units)
	p := pairs{of: make([]int, n), inOrder: make([]bool, n)}
	taken := make([]bool, m)
	pair := func(o, u int, inOrder bool) { p.of[o], p.inOrder[o], taken[u] = u, inOrder, true }
	for o := range p.of {
		p.of[o] = -1
	}

	// Equal texts at both ends are kept by the diff in any case, and cheaper to see.
	lo, hi := equalEnds(c.old, c.new)
	for i := range lo {
		pair(i, i, true)
	}
	for i := range hi {
		pair(n-1-i, m-1-i, true)
	}
	a, b := c.unitSymbols(c.old, lo, n-hi), c.unitSymbols(c.new, lo, m-hi)
	w := work{left: c.limits.units}
	kept, _ := w.align(a, b, c.limits.units, true)
	c.spent += w.spent
	for _, r := range kept {
		for k := range r.n {
			pair(lo+r.a+k, lo+r.b+k, true)
		}
	}

	// What moved: the first left-over with the first, the second with the second.
	// first is the first of b that is left over with each symbol, next the one behind it.
	const none = -1
	first, next := slices.Repeat([]int32{none}, len(c.symbols.keys)), make([]int32, len(b))
	for j := len(b) - 1; j >= 0; j-- {
		if !taken[lo+j] {
			next[j], first[b[j]] = first[b[j]], int32(j)
		}
	}
	for i, x := range a {
		if j := first[x]; p.of[lo+i] < 0 && j != none {
			pair(lo+i, lo+int(j), false)
			first[x] = next[j]
		}
	}
	for o, u := range p.of {
		if u < 0 {
			p.restOld = append(p.restOld, o)
		}
	}
	for u, t := range taken {
		if !t {
			p.restNew = append(p.restNew, u)
		}
	}
	return p
}

func (c *comparison) unitSymbols(d *text.Doc, from, to int) []int32 {
	out := make([]int32, 0, to-from)
	for u := from; u < to; u++ {
		out = append(out, c.symbols.unit(d, u))
	}
	return out
}

// equalEnds returns how many units at the start and at the end have equal texts.
func equalEnds(a, b *text.Doc) (start, end int) {
	n, m := len(a.Units), len(b.Units)
	for start < min(n, m) && unitText(a, start) == unitText(b, start) {
		start++
	}
	for end < min(n, m)-start && unitText(a, n-1-end) == unitText(b, m-1-end) {
		end++
	}
	return start, end
}
