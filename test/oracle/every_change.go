package oracle

import "fmt"

// claimEveryChange claims all edits, for a subscription without keywords.
func (e *Expectation) claimEveryChange() {
	for _, s := range []side{oldSide, newSide} {
		if s == oldSide && !e.reading.Removed || s == newSide && !e.reading.Added {
			continue
		}
		cl := &claim{event: s.event(), may: map[int]bool{}, changed: map[[2]int]bool{}, exact: true}
		e.claimEveryChangeOn(cl, s)
		if len(cl.may) > 0 {
			e.claims = append(e.claims, cl)
		}
	}
}

// claimEveryChangeOn claims the changes of side s.
func (e *Expectation) claimEveryChangeOn(cl *claim, s side) {
	c := e.change
	allow := func(ts []token) {
		for _, b := range blockIndexes(ts) {
			cl.exact, cl.may[b] = false, true
		}
	}
	if c.doubtful {
		allow(c.unpaired[s])
	}
	for _, g := range c.groups {
		if !g.complete {
			allow(g.tokens[s])
			continue
		}
		e.claimChangedTokens(cl, g, s)
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
			for _, b := range blockIndexes(u.tokens) {
				cl.must = append(cl.must, requiredPlace{blocks: []int{b}})
			}
		}
	}
	if c.doubtful {
		cl.must = nil
	}
}

// claimChangedTokens claims the tokens of side s that every alignment of g changes, and allows those
// that some alignment changes.
func (e *Expectation) claimChangedTokens(cl *claim, g *group, s side) {
	ts := g.tokens[s]
	times := make([]int, len(ts)) // in how many alignments each token is changed
	for _, m := range g.alignments {
		for i, changed := range g.changes(m, s).changed {
			if changed && !ts[i].isBorder() {
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
			cl.must = append(cl.must, requiredPlace{blocks: []int{t.block}, occurrences: [][2]int{r}})
		}
	}
	if least, most := g.changedTokens(s); least > 0 && len(g.alignments) > 1 && most > 0 {
		cl.must = append(cl.must, requiredPlace{blocks: blockIndexes(ts)}) // some token is changed, whichever it is
	}
}

// checkEdits checks that reports are numbered by their edits, a removed text before the added
// one in its place, and that no two edits look the same. All texts of an item that is new or gone are one edit.
func checkEdits(reports []Report) error {
	seen := make(map[string]bool)
	for i := 0; i < len(reports); {
		n := 1
		if whole := reports[i].Item; whole == "new" || whole == "gone" {
			for i+n < len(reports) && reports[i+n].Edit == reports[i].Edit && reports[i+n].Item == whole {
				n++
			}
		} else if i+1 < len(reports) && reports[i+1].Edit == reports[i].Edit {
			n = 2
			if reports[i].Event != Removed || reports[i+1].Event != Added {
				return fmt.Errorf("edit %d has the events %s and %s", reports[i].Edit, reports[i].Event, reports[i+1].Event)
			}
		}
		look := ""
		for _, r := range reports[i : i+n] {
			look += fmt.Sprintf("%s %q %q %q ", r.Event, r.Text, r.Snippet, r.Title)
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
