package diff

import (
	"cmp"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// Texts compares two versions of a text and returns what was removed and added. Each line is a block. Texts calls Diff
// and leaves out its groups and the blocks that only moved.
func Texts(old, new string) []flow.Difference {
	var all []flow.Difference
	for _, g := range Diff(text.Analyze(old), text.Analyze(new)) {
		if !g.Moved {
			all = append(all, g.Differences...)
		}
	}
	return all
}

// Diff returns what differs between two texts: a Group for each group of blocks in which
// tokens, or the borders between blocks, were added or removed, and one with Moved set for each
// block that only moved. The groups are in document order: by their position in new, or for
// removed blocks by where they were. Diff returns nil if only spacing or markup differs. If
// more than 100,000 blocks or 1,000,000 tokens of both texts together changed, the groups are
// coarse: see flow.Group. Diff does not change the texts, which may be shared, and is safe for
// concurrent use.
func Diff(old, new *text.Doc) []flow.Group {
	groups, _ := diffWithin(old, new, defaultLimits)
	return groups
}

// diffWithin is Diff within limits. It also returns the cells that were spent.
func diffWithin(old, new *text.Doc, l limits) (groups []flow.Group, spent int64) {
	if old.Content == new.Content {
		return nil, 0
	}
	old, new = withRecords(old, new)
	c := &comparison{old: old, new: new, symbols: newSymbolTable(), limits: l}
	p := c.pairUnits()
	if c.exceedsLimits(p) {
		return c.coarseGroups(p), c.cellsSpent
	}
	w := &aligner{cellsLeft: l.allGroups}
	sets := c.groupUnits(p)
	number := 0 // of the last edit
	for _, s := range sets {
		g := c.diffGroup(s, w)
		for k := range g.Differences {
			g.Differences[k].Edit += number
		}
		if n := len(g.Differences); n > 0 {
			number = g.Differences[n-1].Edit
		}
		if len(g.Old)+len(g.New) > 0 {
			groups = append(groups, g)
		}
	}
	return groups, c.cellsSpent + w.cellsSpent
}

// comparison is one call of Diff.
type comparison struct {
	old, new   *text.Doc
	symbols    *symbolTable
	limits     limits
	cellsSpent int64
	trusted    [256]trust // what the keys of each list say, where that was asked
	// otherKeys are the units, old and new ones, that would belong to one of the other text if not for their keys.
	otherKeys [2][]int
}

// diffGroup finds the differences within s.
func (c *comparison) diffGroup(s unitGroup, w *aligner) flow.Group {
	a, b := c.symbols.newSequence(c.old, s.old, exactForm), c.symbols.newSequence(c.new, s.new, exactForm)
	var g flow.Group
	g.Item, g.Title = c.itemOf(s)
	if s.moved {
		g.Item, g.Moved, g.Old, g.New = "", true, wholeBlocks(c.old, a), wholeBlocks(c.new, b)
		return g
	}
	kept, _ := w.align(a.symbols, b.symbols, c.limits.group, true)
	inA, inB := keptPartners(kept, len(a.symbols), len(b.symbols))
	for _, block := range a.blocks {
		edits := blockEdits(inA[block.first:block.last])
		g.Old = append(g.Old, windows(c.old, block.block, edits)...)
	}
	for _, block := range b.blocks {
		edits := blockEdits(inB[block.first:block.last])
		g.New = append(g.New, windows(c.new, block.block, edits)...)
	}
	if len(s.old) > 0 && len(s.new) > 0 {
		g.OldPassages, g.NewPassages = passages(c.old, s.old, g.Old), passages(c.new, s.new, g.New)
	}
	g.Differences = differences(c.old, c.new, a, b, kept)
	return g
}

// itemOf returns what became of the item that s is, or is a part of, and what names it; nothing if s has units that are
// in no item.
func (c *comparison) itemOf(s unitGroup) (became, title string) {
	olds, inOld := itemAround(c.old, s.old)
	news, inNew := itemAround(c.new, s.new)
	switch {
	case !inOld || !inNew:
		return "", ""
	case len(s.new) == 0:
		became, title = flow.ItemGone, c.old.Title(olds)
	case len(s.old) == 0:
		became, title = flow.ItemNew, c.new.Title(news)
	default:
		became, title = flow.ItemChanged, c.new.Title(news)
	}
	if s.part {
		became = flow.ItemChanged
	}
	return became, clipped(title)
}

// unitPairs says which units of both sides are paired: those with equal folded tokens and borders.
type unitPairs struct {
	// newUnit[o] is the new unit that the old unit o pairs with, or -1.
	newUnit []int
	// inOrder[o] says that the diff of the units kept o. If o has a pair but was not kept, it
	// moved.
	inOrder []bool
	// unpairedOld and unpairedNew are the units without a pair, in order.
	unpairedOld, unpairedNew []int
}

// pairUnits pairs equal units.
func (c *comparison) pairUnits() unitPairs {
	n, m := len(c.old.Units), len(c.new.Units)
	p := unitPairs{newUnit: make([]int, n), inOrder: make([]bool, n)}
	taken := make([]bool, m)
	pair := func(o, u int, inOrder bool) { p.newUnit[o], p.inOrder[o], taken[u] = u, inOrder, true }
	for o := range p.newUnit {
		p.newUnit[o] = -1
	}

	// The diff keeps equal texts at both ends in any case, and comparing them here is cheaper.
	lo, hi := equalEnds(c.old, c.new)
	for i := range lo {
		pair(i, i, true)
	}
	for i := range hi {
		pair(n-1-i, m-1-i, true)
	}
	a, b := c.unitSymbols(c.old, lo, n-hi), c.unitSymbols(c.new, lo, m-hi)
	w := aligner{cellsLeft: c.limits.units}
	kept, _ := w.align(a, b, c.limits.units, true)
	c.cellsSpent += w.cellsSpent
	for _, r := range kept {
		for k := range r.n {
			pair(lo+r.a+k, lo+r.b+k, true)
		}
	}

	// The rest of the equal units moved: pair the first with the first, the second with the
	// second. first is the first unpaired unit of b with each symbol, next the one after it.
	const none = -1
	first, next := slices.Repeat([]int32{none}, len(c.symbols.unitNumbers)), make([]int32, len(b))
	for j := len(b) - 1; j >= 0; j-- {
		if !taken[lo+j] {
			next[j], first[b[j]] = first[b[j]], int32(j)
		}
	}
	for i, x := range a {
		if j := first[x]; p.newUnit[lo+i] < 0 && j != none {
			pair(lo+i, lo+int(j), false)
			first[x] = next[j]
		}
	}
	for o, u := range p.newUnit {
		if u < 0 {
			p.unpairedOld = append(p.unpairedOld, o)
		}
	}
	for u, t := range taken {
		if !t {
			p.unpairedNew = append(p.unpairedNew, u)
		}
	}
	return p
}

// unitSymbols returns the numbers of the units from to to of d, as symbols for a diff.
func (c *comparison) unitSymbols(d *text.Doc, from, to int) []int32 {
	out := make([]int32, 0, to-from)
	for u := from; u < to; u++ {
		out = append(out, c.symbols.unitNumber(d, u))
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

// exceedsLimits reports whether more blocks or tokens changed than the limits allow to group.
func (c *comparison) exceedsLimits(p unitPairs) bool {
	if len(c.old.Blocks)+len(c.new.Blocks) <= c.limits.blocks && len(c.old.Tokens)+len(c.new.Tokens) <= c.limits.tokens {
		return false
	}
	blocks, tokens := 0, 0
	add := func(d *text.Doc, u int) {
		blocks += d.Units[u].LastBlock - d.Units[u].FirstBlock
		tokens += countUnitTokens(d, u)
	}
	for o, u := range p.newUnit {
		if u >= 0 && (!p.inOrder[o] || !c.sameWords(o, u)) {
			add(c.old, o)
			add(c.new, u)
		}
	}
	for _, o := range p.unpairedOld {
		add(c.old, o)
	}
	for _, u := range p.unpairedNew {
		add(c.new, u)
	}
	return blocks > c.limits.blocks || tokens > c.limits.tokens
}

// coarseGroups returns the changed blocks as one group, and those that only moved as another, both
// with flow.Group.Coarse set. It allocates nothing per token.
func (c *comparison) coarseGroups(p unitPairs) []flow.Group {
	var changed, moved [2][]bool
	for side, n := range [2]int{len(c.old.Units), len(c.new.Units)} {
		changed[side], moved[side] = make([]bool, n), make([]bool, n)
	}
	for o, u := range p.newUnit {
		switch {
		case u < 0:
			changed[0][o] = true
		case !c.sameWords(o, u):
			changed[0][o], changed[1][u] = true, true
		case !p.inOrder[o]:
			moved[0][o], moved[1][u] = true, true
		}
	}
	for _, u := range p.unpairedNew {
		changed[1][u] = true
	}

	var groups []flow.Group
	g := flow.Group{Coarse: true}
	for _, w := range stretches(c.old, changed[0]) {
		g.Differences = append(g.Differences, flow.Difference{Event: pipeline.Removed, Text: w.Text, Offset: w.Offset})
	}
	for _, w := range stretches(c.new, changed[1]) {
		g.Differences = append(g.Differences, flow.Difference{Event: pipeline.Added, Text: w.Text, Offset: w.Offset})
	}
	if len(g.Differences) > 0 {
		groups = append(groups, g)
	}
	m := flow.Group{Coarse: true, Moved: true, Old: stretches(c.old, moved[0]), New: stretches(c.new, moved[1])}
	if len(m.Old) > 0 {
		groups = append(groups, m)
	}
	return groups
}

// stretches returns the texts of the units u of d for which which[u] is true. Adjacent units
// are joined.
func stretches(d *text.Doc, which []bool) []flow.Window {
	var out []flow.Window
	for u := 0; u < len(which); u++ {
		if !which[u] {
			continue
		}
		first := u
		for u+1 < len(which) && which[u+1] {
			u++
		}
		start, end := d.Blocks[d.Units[first].FirstBlock].Start, d.Blocks[d.Units[u].LastBlock-1].End
		out = append(out, flow.Window{Offset: start, Text: d.Content[start:end]})
	}
	return out
}

// sameWords is sameTokens for two units whose folded tokens are equal. It allocates nothing per
// token.
func (c *comparison) sameWords(o, u int) bool {
	if unitText(c.old, o) == unitText(c.new, u) {
		return true
	}
	i, j := c.old.Blocks[c.old.Units[o].FirstBlock].First, c.new.Blocks[c.new.Units[u].FirstBlock].First
	for k := range countUnitTokens(c.old, o) {
		a, b := c.old.Text(i+k), c.new.Text(j+k)
		if a != b && text.PlainForm(a) != text.PlainForm(b) {
			return false
		}
	}
	return true
}

// changeSize counts the tokens that changed between old and new, whose difference groups is.
func changeSize(old, new *text.Doc, groups []flow.Group) flow.Size {
	s := flow.Size{Old: len(old.Tokens), New: len(new.Tokens)}
	for _, g := range groups {
		switch {
		case g.Moved:
			for _, w := range g.New {
				s.Moved += countTokensIn(new, w.Offset, len(w.Text))
			}
		case g.Coarse:
			for _, d := range g.Differences {
				if d.Event == pipeline.Removed {
					s.Removed += countTokensIn(old, d.Offset, len(d.Text))
				} else {
					s.Added += countTokensIn(new, d.Offset, len(d.Text))
				}
			}
		default:
			s.Removed += countEdited(g.Old)
			s.Added += countEdited(g.New)
		}
	}
	return s
}

// countEdited returns how many tokens the edits of the windows hold.
func countEdited(windows []flow.Window) (n int) {
	for _, w := range windows {
		for _, e := range w.Edits {
			n += e[1] - e[0]
		}
	}
	return n
}

// countTokensIn returns how many tokens of d begin within the given range of its text.
func countTokensIn(d *text.Doc, offset, length int) int {
	before := func(at int) int {
		i, _ := slices.BinarySearchFunc(d.Tokens, at, func(t text.Token, at int) int { return cmp.Compare(t.Start, at) })
		return i
	}
	return before(offset+length) - before(offset)
}
