package diff

import (
	"slices"

	"github.com/vokter/vokter/pipeline/text"
)

// Shares that two units must have in common to belong together, in percent of the tokens or the weight of one of
// them. They are measured on lists that roll and on prose; most lie on plateaus.
const (
	nearTokens = 50 // of the smaller one's tokens, for blocks in one gap
	nearWeight = 20 // and of its weight
	nearItems  = 75 // of the smaller one's weight, for items in one gap
	farBlocks  = 50 // of the larger one's weight, for blocks that moved
	farItems   = 90 // and for items and lines
	otherKeys  = 90 // of the larger one's weight, for items known by different keys
	sameKeys   = 33 // of the smaller one's weight, for items known by one key
	sameItem   = 65 // of the larger one's weight, for items that tell whether keys can be trusted
)

// A token in n units of the text that has more of them weighs fullWeight/n: what many units have says little of any
// of them. A number is more often a value than a name, and weighs a part of that.
const (
	fullWeight    = 1 << 16
	numberDivisor = 8
)

// relation says which of the units without a pair belong together.
type relation struct {
	*comparison
	groups   *unionFind // new unit j is element len(old)+j
	old, new []candidate
	weights  []int64  // of folded tokens, by symbol
	alone    [][2]int // an old and a new unit that are the only ones in their gap
}

// candidate is a unit without a pair.
type candidate struct {
	text.Unit
	index  int     // in Doc.Units
	gap    int     // how many units that stayed in order are before it
	bag    []int32 // its sorted symbols
	weight int64
	line   bool // see findLines
	titled bool // it belongs to the unit with the same title or words, and to no other
}

// relate joins in groups the units of p without a pair that belong together.
func (c *comparison) relate(p unitPairs, groups *unionFind) {
	r := &relation{comparison: c, groups: groups}
	r.old, r.new = c.candidates(c.old, p.unpairedOld), c.candidates(c.new, p.unpairedNew)
	r.findGaps(p)
	r.weigh(p)
	r.findTrust(p)
	r.joinSameKeys()
	r.joinSameTitles(p)
	r.joinSameWords(p)
	r.joinWithinGaps()
	r.joinAcrossGaps()
	r.joinReplaced()
}

// candidates returns the given units of d.
func (c *comparison) candidates(d *text.Doc, units []int) []candidate {
	bags := tokenBags(c.symbols.newSequence(d, units, foldedForm), len(units))
	lines := findLines(d)
	out := make([]candidate, len(units))
	for i, u := range units {
		out[i] = candidate{Unit: d.Units[u], index: u, bag: bags[i], line: lines[u]}
	}
	return out
}

// Bounds of what is read as lines.
const (
	minLines = 4                // one after the other
	maxLine  = text.MaxItem / 2 // tokens of a line; prose has more
)

// findLines finds the units of d that are lines of a list that no element holds, such as a paragraph for each job: at
// least minLines short blocks one after the other that are no items.
func findLines(d *text.Doc) []bool {
	lines := make([]bool, len(d.Units))
	first := 0
	for i, u := range d.Units {
		if b := d.Blocks[u.FirstBlock]; u.Item || u.Key != 0 || b.Last-b.First > maxLine {
			first = i + 1
			continue
		}
		if i+1-first >= minLines {
			for k := i; k >= first && !lines[k]; k-- {
				lines[k] = true
			}
		}
	}
	return lines
}

// findGaps finds the gaps in which the candidates are.
func (r *relation) findGaps(p unitPairs) {
	gap, i := 0, 0
	stayed := make([]bool, len(r.comparison.new.Units))
	for o, u := range p.newUnit {
		switch {
		case p.inOrder[o]:
			stayed[u] = true
			gap++
		case u < 0:
			r.old[i].gap = gap
			i++
		}
	}
	gap, i = 0, 0
	for u := 0; i < len(r.new); u++ {
		switch {
		case stayed[u]:
			gap++
		case r.new[i].index == u:
			r.new[i].gap = gap
			i++
		}
	}
}

// weigh finds the weights of the candidates and of their tokens.
func (r *relation) weigh(p unitPairs) {
	n := len(r.symbols.tokens[foldedForm]) + int(border) + 1
	in, onlyNew := make([]int32, n), make([]int32, n) // in how many units a token is
	for _, c := range r.new {
		for x := range eachDistinct(c.bag) {
			onlyNew[x]++
		}
	}
	for _, c := range r.old {
		for x := range eachDistinct(c.bag) {
			in[x]++
		}
	}
	for x := range in {
		in[x] = max(in[x], onlyNew[x])
	}
	// Units with a pair have the same tokens in both texts.
	d := r.comparison.old
	last := make([]int32, n) // the last unit in which a token was seen, from 1
	for o, u := range p.newUnit {
		if u < 0 {
			continue
		}
		for t := d.Blocks[d.Units[o].FirstBlock].First; t < d.Blocks[d.Units[o].LastBlock-1].Last; t++ {
			if x, ok := r.symbols.knownToken(d.Text(t)); ok && last[x] != int32(o)+1 {
				last[x] = int32(o) + 1
				in[x]++
			}
		}
	}
	r.weights = make([]int64, n)
	for x, n := range in {
		r.weights[x] = fullWeight / max(int64(n), 1)
	}
	for folded, x := range r.symbols.tokens[foldedForm] {
		if folded[0] >= '0' && folded[0] <= '9' || text.IsSign(folded) {
			r.weights[x] /= numberDivisor
		}
	}
	for x := range r.weights {
		r.weights[x] = max(r.weights[x], 1)
	}
	for _, side := range [][]candidate{r.old, r.new} {
		for i, c := range side {
			for _, x := range c.bag {
				side[i].weight += r.weights[x]
			}
		}
	}
}

// commonWeight returns the weight of what a and b have in common in any order, counting repeats.
func (r *relation) commonWeight(a, b *candidate) (n int64) {
	for i, j := 0, 0; i < len(a.bag) && j < len(b.bag); {
		switch x, y := a.bag[i], b.bag[j]; {
		case x < y:
			i++
		case x > y:
			j++
		default:
			n += r.weights[x]
			i, j = i+1, j+1
		}
	}
	return n
}

// isAlike reports whether a and b have a share of the larger one's weight in common.
func (r *relation) isAlike(a, b *candidate, share int64) bool {
	large := max(a.weight, b.weight)
	return 100*min(a.weight, b.weight) >= share*large && 100*r.commonWeight(a, b) >= share*large
}

// areItems reports whether both are items that are no longer than a paragraph of prose.
func areItems(a, b *candidate) bool {
	return a.Item && b.Item && max(len(a.bag), len(b.bag)) <= text.MaxItem
}

// join says that old unit i and new unit j belong together.
func (r *relation) join(i, j int) { r.groups.join(i, len(r.old)+j) }

// joinWithinGaps joins units of the same gap by a diff of its tokens.
func (r *relation) joinWithinGaps() {
	w := aligner{cellsLeft: r.limits.grouping}
	gapEnd := func(all []candidate, from int) int {
		to := from + 1
		for to < len(all) && all[to].gap == all[from].gap {
			to++
		}
		return to
	}
	for i, j := 0, 0; i < len(r.old) && j < len(r.new); {
		switch a, b := r.old[i].gap, r.new[j].gap; {
		case a < b:
			i++
		case a > b:
			j++
		default:
			endI, endJ := gapEnd(r.old, i), gapEnd(r.new, j)
			r.joinGap(&w, i, endI, j, endJ)
			i, j = endI, endJ
		}
	}
	r.cellsSpent += w.cellsSpent
}

// joinGap joins units of one gap: the old ones [i, endI) and the new ones [j, endJ).
func (r *relation) joinGap(w *aligner, i, endI, j, endJ int) {
	if endI == i+1 && endJ == j+1 {
		r.alone = append(r.alone, [2]int{i, j})
	}
	a, b := r.sequenceOf(r.comparison.old, r.old[i:endI]), r.sequenceOf(r.comparison.new, r.new[j:endJ])
	kept, shortest := w.align(a.symbols, b.symbols, r.limits.grouping, true)
	if shortest {
		for at, k := range r.keptBetween(a, b, kept) {
			if r.belongTogether(&r.old[i+at[0]], &r.new[j+at[1]], k) {
				r.join(i+at[0], j+at[1])
			}
		}
		return
	}
	r.eachPairSharingTokens(bagsOf(r.old[i:endI]), bagsOf(r.new[j:endJ]), func(x, y, common int) {
		a, b := &r.old[i+x], &r.new[j+y]
		if 4*common >= min(len(a.bag), len(b.bag)) && r.belongTogether(a, b, keptTokens{common, r.commonWeight(a, b)}) {
			r.join(i+x, j+y)
		}
	})
}

func (r *relation) sequenceOf(d *text.Doc, of []candidate) sequence {
	units := make([]int, len(of))
	for i, c := range of {
		units[i] = c.index
	}
	return r.symbols.newSequence(d, units, foldedForm)
}

func bagsOf(of []candidate) [][]int32 {
	bags := make([][]int32, len(of))
	for i, c := range of {
		bags[i] = c.bag
	}
	return bags
}

// keptTokens are tokens that a diff keeps between two units.
type keptTokens struct {
	n      int
	weight int64
}

// keptBetween returns what a diff keeps between the units of a and those of b.
func (r *relation) keptBetween(a, b sequence, kept []run) map[[2]int]keptTokens {
	all := make(map[[2]int]keptTokens)
	i, j := 0, 0 // the present blocks
	for _, run := range kept {
		for k := range run.n {
			x, y := run.a+k, run.b+k
			if a.symbols[x] == border {
				continue
			}
			for a.blocks[i].last < x {
				i++
			}
			for b.blocks[j].last < y {
				j++
			}
			at := [2]int{a.blocks[i].unit, b.blocks[j].unit}
			all[at] = keptTokens{all[at].n + 1, all[at].weight + r.weights[a.symbols[x]]}
		}
	}
	return all
}

// belongTogether reports whether two units of one gap belong together, given what a diff keeps between them. It
// must be enough of the smaller one, and that must be no mere fragment of the larger one: a quarter as long, or
// five tokens.
func (r *relation) belongTogether(a, b *candidate, kept keptTokens) bool {
	small, large := min(len(a.bag), len(b.bag)), max(len(a.bag), len(b.bag))
	if 4*small < large && kept.n < 5 {
		return false
	}
	weight := min(a.weight, b.weight)
	if areItems(a, b) {
		if 100*kept.weight < nearItems*weight {
			return false
		}
	} else if 100*kept.n < nearTokens*small || 100*kept.weight < nearWeight*weight {
		return false
	}
	return r.mayJoin(a, b)
}

// maxValue is how many tokens a block has that is one value, such as a price.
const maxValue = 3

// joinReplaced joins values that are the only units in their gap: one stands in the place of the other, although they
// have nothing in common.
func (r *relation) joinReplaced() {
	for _, at := range r.alone {
		a, b := &r.old[at[0]], &r.new[at[1]]
		if !a.Item && !b.Item && max(len(a.bag), len(b.bag)) <= maxValue && !r.groups.joined[at[0]] && !r.groups.joined[len(r.old)+at[1]] && r.commonWeight(a, b) == 0 {
			r.join(at[0], at[1])
		}
	}
}

// joinAcrossGaps joins units that belong to no group with such a unit of the other side, wherever it is. Both must
// share a token that no other such unit has, and be much alike. Each unit of either side chooses the one with which
// it has most in common, and of several the first.
func (r *relation) joinAcrossGaps() {
	type choice struct {
		unit   int
		common int64
	}
	bestOld, bestNew := make(map[int]choice), make(map[int]choice)
	left := r.limits.grouping
	for _, at := range r.sharingOwnToken() {
		a, b := &r.old[at[0]], &r.new[at[1]]
		if left -= int64(len(a.bag) + len(b.bag)); left < 0 {
			break
		}
		if !r.isAlike(a, b, shareAcross(a, b)) || !r.mayJoin(a, b) {
			continue
		}
		n := r.commonWeight(a, b)
		if n > bestOld[at[0]].common {
			bestOld[at[0]] = choice{at[1], n}
		}
		if n > bestNew[at[1]].common {
			bestNew[at[1]] = choice{at[0], n}
		}
	}
	r.cellsSpent += r.limits.grouping - max(left, 0)
	for i, b := range bestOld {
		r.join(i, b.unit)
	}
	for j, b := range bestNew {
		r.join(b.unit, j)
	}
}

// shareAcross returns the share of the larger one's weight that joins a and b whatever lies between them.
func shareAcross(a, b *candidate) int64 {
	switch {
	case a.line && b.line && a.gap != b.gap:
		return farItems
	case !areItems(a, b):
		return farBlocks
	case a.gap == b.gap:
		return nearItems
	}
	return farItems
}

// sharingOwnToken returns the pairs of an old and a new unit that belong to no group and have a token that no
// other such unit has, in order.
func (r *relation) sharingOwnToken() [][2]int {
	const none, several = -1, -2
	owners := make(map[int32][2]int)
	note := func(units []candidate, side, offset int) {
		for i, c := range units {
			if r.groups.joined[offset+i] {
				continue
			}
			for x := range eachDistinct(c.bag) {
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
	note(r.old, 0, 0)
	note(r.new, 1, len(r.old))
	var pairs [][2]int
	for _, o := range owners {
		if o[0] >= 0 && o[1] >= 0 {
			pairs = append(pairs, o)
		}
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(pairs)
}
