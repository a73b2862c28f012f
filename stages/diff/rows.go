package diff

import (
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// Rows returns both texts side by side, in the order of the new text, and how much of them changed.
// What was removed follows what stood in front of it.
// Rows of flow.RowKept hold the blocks without a difference. The other rows are the groups of Diff, each
// with all of its blocks. Blocks without a word are left out.
func Rows(old, new *text.Doc) ([]flow.Row, flow.Size) {
	old, new = withRecords(old, new)
	c := &comparison{old: old, new: new, symbols: newSymbolTable(), limits: defaultLimits}
	p := c.pairUnits()
	var sets []unitGroup
	coarse := c.exceedsLimits(p)
	if coarse {
		sets = c.singleSets(p)
	} else {
		sets = c.groupUnits(p)
	}
	for o, u := range p.newUnit {
		if u >= 0 && p.inOrder[o] && c.sameWords(o, u) {
			sets = append(sets, unitGroup{old: []int{o}, new: []int{u}, unchanged: true})
		}
	}
	sortForReading(sets, p)

	size := flow.Size{Old: len(old.Tokens), New: len(new.Tokens)}
	w := &aligner{cellsLeft: c.limits.allGroups}
	rows := make([]flow.Row, 0, len(sets))
	for _, s := range sets {
		rows = append(rows, c.rowOf(s, w, coarse, &size))
	}
	return rows, size
}

// sortForReading sorts sets by their first new unit. Those without one follow the group of the old
// unit in front of them. p are the texts' pairs.
func sortForReading(sets []unitGroup, p unitPairs) {
	at := make([]int, len(p.newUnit)) // the new unit of each old one, or -1
	for o, u := range p.newUnit {
		if at[o] = -1; p.inOrder[o] {
			at[o] = u
		}
	}
	for _, s := range sets {
		if len(s.new) > 0 && !s.moved {
			for _, o := range s.old {
				at[o] = s.new[0]
			}
		}
	}
	last := -1
	for o, u := range at {
		if u < 0 {
			at[o] = last
		}
		last = at[o]
	}
	place := func(s unitGroup) [3]int {
		if len(s.new) > 0 {
			return [3]int{s.new[0], 0, 0}
		}
		return [3]int{at[s.old[0]], 1, s.old[0]}
	}
	slices.SortFunc(sets, func(a, b unitGroup) int {
		x, y := place(a), place(b)
		return slices.Compare(x[:], y[:])
	})
}

// rowOf returns the flow.Row of s and adds what changed to size. In a coarse comparison all words of a
// changed block count as changed.
func (c *comparison) rowOf(s unitGroup, w *aligner, coarse bool, size *flow.Size) flow.Row {
	if s.unchanged || s.moved {
		r := flow.Row{Kind: flow.RowKept, Old: unmarkedLines(c.old, s.old), New: unmarkedLines(c.new, s.new)}
		if s.moved {
			r.Kind = flow.RowMoved
			for _, u := range s.new {
				size.Moved += countUnitTokens(c.new, u)
			}
		}
		a, b := c.old.Units[s.old[0]], c.new.Units[s.new[0]]
		r.OtherLink = haveOneList(a, b) && a.Key != b.Key
		return r
	}
	a, b := c.symbols.newSequence(c.old, s.old, exactForm), c.symbols.newSequence(c.new, s.new, exactForm)
	var kept []run
	if !coarse && len(s.old) > 0 && len(s.new) > 0 {
		kept, _ = w.align(a.symbols, b.symbols, c.limits.group, true)
	}
	inA, inB := keptPartners(kept, len(a.symbols), len(b.symbols))
	r := flow.Row{Kind: flow.RowChanged}
	r.Item, r.Title = c.itemOf(s)
	switch {
	case len(s.new) == 0:
		r.Kind = flow.RowRemoved
	case len(s.old) == 0:
		r.Kind = flow.RowAdded
	}
	r.OtherLink = r.Kind != flow.RowChanged && c.isLikeOther(s)
	for _, block := range a.blocks {
		edits := blockEdits(inA[block.first:block.last])
		r.Old = append(r.Old, newLine(c.old, block.block, edits, pipeline.Removed))
		size.Removed += countEditTokens(edits)
	}
	for _, block := range b.blocks {
		edits := blockEdits(inB[block.first:block.last])
		r.New = append(r.New, newLine(c.new, block.block, edits, pipeline.Added))
		size.Added += countEditTokens(edits)
	}
	return r
}

// singleSets returns a set for each pair of units that differ or moved, and for each unit without a
// pair.
func (c *comparison) singleSets(p unitPairs) []unitGroup {
	var out []unitGroup
	for o, u := range p.newUnit {
		if u < 0 {
			continue
		}
		same := c.sameWords(o, u)
		if !same || !p.inOrder[o] {
			out = append(out, unitGroup{old: []int{o}, new: []int{u}, moved: same})
		}
	}
	for _, o := range p.unpairedOld {
		out = append(out, unitGroup{old: []int{o}})
	}
	for _, u := range p.unpairedNew {
		out = append(out, unitGroup{new: []int{u}})
	}
	return out
}

// unmarkedLines returns the blocks of units without marks of changes.
func unmarkedLines(d *text.Doc, units []int) []flow.Line {
	var lines []flow.Line
	for _, u := range units {
		for b := d.Units[u].FirstBlock; b < d.Units[u].LastBlock; b++ {
			lines = append(lines, newLine(d, b, nil, ""))
		}
	}
	return lines
}

// newLine returns block b of d, in segments. The edits are indexes of tokens within the block.
func newLine(d *text.Doc, b int, edits []flow.Span, event pipeline.Event) flow.Line {
	block := d.Blocks[b]
	l := flow.Line{Offset: block.Start}
	at := block.Start
	add := func(end int, event pipeline.Event) {
		if at < end {
			l.Segments = append(l.Segments, flow.Segment{Text: d.Content[at:end], Event: event})
			at = end
		}
	}
	for _, e := range edits {
		if e[0] == e[1] {
			continue
		}
		add(d.Tokens[block.First+e[0]].Start, "")
		add(d.Tokens[block.First+e[1]-1].End, event)
	}
	add(block.End, "")
	return l
}

// countEditTokens returns how many tokens the edits hold.
func countEditTokens(edits []flow.Span) (n int) {
	for _, e := range edits {
		n += e[1] - e[0]
	}
	return n
}

// Around returns rows without the rows of flow.RowKept that are more than context rows away from all
// other rows. A row of flow.RowSkipped stands for them.
func Around(rows []flow.Row, context int) []flow.Row {
	near := make([]bool, len(rows))
	for i, r := range rows {
		if r.Kind == flow.RowKept {
			continue
		}
		for k := max(i-context, 0); k < min(i+context+1, len(rows)); k++ {
			near[k] = true
		}
	}
	var out []flow.Row
	for i, r := range rows {
		switch last := len(out) - 1; {
		case near[i]:
			out = append(out, r)
		case last >= 0 && out[last].Kind == flow.RowSkipped:
			out[last].Skipped++
		default:
			out = append(out, flow.Row{Kind: flow.RowSkipped, Skipped: 1})
		}
	}
	return slices.Clip(out)
}
