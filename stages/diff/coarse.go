package diff

import (
	"golang.org/x/text/unicode/norm"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// tooMuch reports whether more blocks or tokens changed than the limits allow to group.
func (c *comparison) tooMuch(p pairs) bool {
	if len(c.old.Blocks)+len(c.new.Blocks) <= c.limits.blocks && len(c.old.Tokens)+len(c.new.Tokens) <= c.limits.tokens {
		return false
	}
	blocks, tokens := 0, 0
	add := func(d *text.Doc, u int) {
		blocks += d.Units[u].LastBlock - d.Units[u].FirstBlock
		tokens += unitTokens(d, u)
	}
	for o, u := range p.of {
		if u >= 0 && (!p.inOrder[o] || !c.sameWords(o, u)) {
			add(c.old, o)
			add(c.new, u)
		}
	}
	for _, o := range p.restOld {
		add(c.old, o)
	}
	for _, u := range p.restNew {
		add(c.new, u)
	}
	return blocks > c.limits.blocks || tokens > c.limits.tokens
}

// coarse returns the changed blocks as one group, and those that only moved as another, both
// with pipeline.Group.Coarse set. It needs no memory for each token.
func (c *comparison) coarse(p pairs) []pipeline.Group {
	var changed, moved [2][]bool
	for side, n := range [2]int{len(c.old.Units), len(c.new.Units)} {
		changed[side], moved[side] = make([]bool, n), make([]bool, n)
	}
	for o, u := range p.of {
		switch {
		case u < 0:
			changed[0][o] = true
		case !c.sameWords(o, u):
			changed[0][o], changed[1][u] = true, true
		case !p.inOrder[o]:
			moved[0][o], moved[1][u] = true, true
		}
	}
	for _, u := range p.restNew {
		changed[1][u] = true
	}

	var groups []pipeline.Group
	g := pipeline.Group{Coarse: true}
	for _, w := range stretches(c.old, changed[0]) {
		g.Differences = append(g.Differences, pipeline.Difference{Event: pipeline.Removed, Text: w.Text, Offset: w.Offset})
	}
	for _, w := range stretches(c.new, changed[1]) {
		g.Differences = append(g.Differences, pipeline.Difference{Event: pipeline.Added, Text: w.Text, Offset: w.Offset})
	}
	if len(g.Differences) > 0 {
		groups = append(groups, g)
	}
	m := pipeline.Group{Coarse: true, Moved: true, Old: stretches(c.old, moved[0]), New: stretches(c.new, moved[1])}
	if len(m.Old) > 0 {
		groups = append(groups, m)
	}
	return groups
}

// stretches returns the texts of the units of d that which names. Neighbours are one.
func stretches(d *text.Doc, which []bool) []pipeline.Window {
	var out []pipeline.Window
	for u := 0; u < len(which); u++ {
		if !which[u] {
			continue
		}
		first := u
		for u+1 < len(which) && which[u+1] {
			u++
		}
		start, end := d.Blocks[d.Units[first].FirstBlock].Start, d.Blocks[d.Units[u].LastBlock-1].End
		out = append(out, pipeline.Window{Offset: start, Text: d.Content[start:end]})
	}
	return out
}

// sameWords is sameTokens for two units whose folded tokens are equal. It numbers no tokens,
// which would take memory for each.
func (c *comparison) sameWords(o, u int) bool {
	if unitText(c.old, o) == unitText(c.new, u) {
		return true
	}
	i, j := c.old.Blocks[c.old.Units[o].FirstBlock].First, c.new.Blocks[c.new.Units[u].FirstBlock].First
	for k := range unitTokens(c.old, o) {
		a, b := c.old.Text(i+k), c.new.Text(j+k)
		if a != b && norm.NFC.String(a) != norm.NFC.String(b) {
			return false
		}
	}
	return true
}
