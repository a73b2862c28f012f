package oracle

import "fmt"

// every claims all edits, for a subscription without keywords.
func (e *Expectation) every() {
	for _, s := range []side{oldSide, newSide} {
		if s == oldSide && !e.reading.Removed || s == newSide && !e.reading.Added {
			continue
		}
		cl := &claim{event: s.event(), may: map[int]bool{}, changed: map[[2]int]bool{}, exact: true}
		e.fillEvery(cl, s)
		if len(cl.may) > 0 {
			e.claims = append(e.claims, cl)
		}
	}
}

// fillEvery claims the changed tokens of side s.
func (e *Expectation) fillEvery(cl *claim, s side) {
	c := e.change
	allow := func(ts []token) {
		for _, b := range blocks(ts) {
			cl.exact, cl.may[b] = false, true
		}
	}
	if c.doubtful {
		allow(c.rest[s])
	}
	for _, g := range c.groups {
		if !g.complete {
			allow(g.tokens[s])
			continue
		}
		e.changedTokens(cl, g, s)
	}
	switch {
	case !e.reading.Moved:
	case c.doubtful || c.doubtfulMoves:
		for _, u := range c.pairs[s] {
			allow(u.tokens)
		}
	default:
		for _, u := range c.moved[s] {
			allow(u.tokens)
			for _, b := range blocks(u.tokens) {
				cl.must = append(cl.must, place{blocks: []int{b}})
			}
		}
	}
	if c.doubtful {
		cl.must = nil
	}
}

// changedTokens claims the tokens of side s that every alignment of g changes, and allows those
// that some alignment changes.
func (e *Expectation) changedTokens(cl *claim, g *group, s side) {
	ts := g.tokens[s]
	times := make([]int, len(ts)) // in how many alignments each token is changed
	for _, m := range g.alignments {
		for i, changed := range g.changes(m, s).changed {
			if changed && !ts[i].border() {
				times[i]++
			}
		}
	}
	for i, t := range ts {
		if times[i] == 0 {
			continue
		}
		r := e.span(s, ts, i, i)
		cl.may[t.block], cl.changed[r] = true, true
		if times[i] == len(g.alignments) {
			cl.must = append(cl.must, place{blocks: []int{t.block}, occurrences: [][2]int{r}})
		}
	}
	if least, most := g.differing(s); least > 0 && len(g.alignments) > 1 && most > 0 {
		cl.must = append(cl.must, place{blocks: blocks(ts)}) // some token is changed, whichever it is
	}
}

// checkEdits checks that reports are numbered by their edits, a removed text before the added
// one in its place, and that no two edits look the same.
func checkEdits(reports []Report) error {
	seen := make(map[string]bool)
	for i := 0; i < len(reports); {
		n := 1
		if i+1 < len(reports) && reports[i+1].Edit == reports[i].Edit {
			n = 2
			if reports[i].Event != Removed || reports[i+1].Event != Added {
				return fmt.Errorf("edit %d has the events %s and %s", reports[i].Edit, reports[i].Event, reports[i+1].Event)
			}
		}
		look := ""
		for _, r := range reports[i : i+n] {
			look += fmt.Sprintf("%s %q %q %q ", r.Event, r.Text, r.Snippet, r.Row)
		}
		if seen[look] {
			return fmt.Errorf("two edits look the same: %s", look)
		}
		seen[look] = true
		if want := len(seen); reports[i].Edit != want {
			return fmt.Errorf("%s %q: edit %d, want %d", reports[i].Event, reports[i].Text, reports[i].Edit, want)
		}
		i += n
	}
	return nil
}
