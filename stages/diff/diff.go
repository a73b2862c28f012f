package diff

import (
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// Diff returns what differs between two texts: a Group for each group of blocks in
// which tokens, or the borders between them, were added or removed, and one with Moved set
// for each block that only changed place. The groups are in document order: by where they
// are in new, and those that only went where they were. It returns none where only
// spacing or markup differs. Where more than 100,000 blocks or 1,000,000 tokens of both texts
// together changed, the groups are coarse: see pipeline.Group. The texts are not changed and
// may be shared; Diff is a pure function of them and safe for concurrent use.
func Diff(old, new *text.Doc) []pipeline.Group {
	groups, _ := compare(old, new, standard)
	return groups
}

// compare is Diff within limits. It also returns the cells that were spent.
func compare(old, new *text.Doc, l limits) (groups []pipeline.Group, spent int64) {
	if old.Content == new.Content {
		return nil, 0
	}
	c := &comparison{old: old, new: new, symbols: newSymbols(), limits: l}
	p := c.pairUnits()
	if c.tooMuch(p) {
		return c.coarse(p), c.spent
	}
	w := &work{left: l.page}
	for _, s := range c.sets(p) {
		g := c.group(s, w)
		if len(g.Old)+len(g.New) > 0 {
			groups = append(groups, g)
		}
	}
	return groups, c.spent + w.spent
}

// comparison is one call of Diff.
type comparison struct {
	old, new *text.Doc
	symbols  *symbols
	limits   limits
	spent    int64
}

// group finds the differences within s.
func (c *comparison) group(s set, w *work) pipeline.Group {
	a, b := c.symbols.sequence(c.old, s.old, exact), c.symbols.sequence(c.new, s.new, exact)
	if s.moved {
		return pipeline.Group{Moved: true, Old: whole(c.old, a), New: whole(c.new, b)}
	}
	kept, _ := w.align(a.symbols, b.symbols, c.limits.region, true)
	inA, inB := partners(kept, len(a.symbols), len(b.symbols))
	var g pipeline.Group
	for _, block := range a.blocks {
		edits := blockEdits(inA[block.first:block.last])
		g.Old = append(g.Old, windows(c.old, block.block, edits)...)
		g.Differences = append(g.Differences, differences(c.old, block.block, edits, pipeline.Removed)...)
	}
	for _, block := range b.blocks {
		edits := blockEdits(inB[block.first:block.last])
		g.New = append(g.New, windows(c.new, block.block, edits)...)
		g.Differences = append(g.Differences, differences(c.new, block.block, edits, pipeline.Added)...)
	}
	return g
}
