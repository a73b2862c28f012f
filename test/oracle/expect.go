package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// requiredPlace is where a keyword must be reported: a group, or a block that moved.
type requiredPlace struct {
	blocks []int // of the event's side
	// occurrences, as ranges of bytes in the version's text, each of which a report must
	// touch; nil where any report in blocks will do.
	occurrences [][2]int
}

// claim is one keyword with one event.
type claim struct {
	event string
	key   keyword
	must  []requiredPlace
	// may holds the blocks in which a report may be.
	may map[int]bool
	// changed holds ranges of bytes: a report must hold an occurrence of a phrase that is
	// one of these. Nil where that is not known.
	changed map[[2]int]bool
	exact   bool // changed is known
}

// Expectation is what a notification must and may contain.
type Expectation struct {
	change  *Change
	reading reading
	claims  []*claim
}

// Expect returns what c says to s, whose words are compared in lang.
func (c *Change) Expect(s Subscription, lang *Language) *Expectation {
	e := &Expectation{change: c, reading: reading{s, lang}}
	least, most, length := c.changedTokens(s.Moved)
	if !s.Min.admits(most, length) {
		return e
	}
	seen := make(map[string]bool)
	if len(s.Keywords) == 0 {
		e.claimEveryChange()
	}
	for _, spelling := range s.Keywords {
		if seen[spelling] {
			continue
		}
		seen[spelling] = true
		k := e.reading.parseKeyword(spelling)
		for _, sd := range []side{oldSide, newSide} {
			if sd == oldSide && !s.Removed || sd == newSide && !s.Added {
				continue
			}
			cl := &claim{event: sd.event(), key: k, may: map[int]bool{}, changed: map[[2]int]bool{}, exact: true}
			e.claimKeyword(cl, sd)
			if len(cl.may) > 0 {
				e.claims = append(e.claims, cl)
			}
		}
	}
	if !s.Min.admits(least, length) {
		for _, cl := range e.claims {
			cl.must = nil // whether the change is large enough is left open
		}
	}
	return e
}

// Must reports whether there must be a notification.
func (e *Expectation) Must() bool {
	for _, c := range e.claims {
		if len(c.must) > 0 {
			return true
		}
	}
	return false
}

// May reports whether there may be a notification.
func (e *Expectation) May() bool { return len(e.claims) > 0 }

// Doubtful reports whether the behaviour leaves open what is reported.
func (e *Expectation) Doubtful() bool {
	for _, c := range e.claims {
		if len(c.must) == 0 {
			return true
		}
	}
	return false
}

func (e *Expectation) claimKeyword(cl *claim, s side) {
	c := e.change
	if c.doubtful {
		cl.exact = false
		e.allowAnywhere(cl, c.unpaired[s])
		if e.reading.Moved {
			e.allowMovedUnits(cl, s)
		}
	}
	for _, g := range c.groups {
		if e.reading.Terms {
			e.claimTerms(cl, g, s)
		} else {
			e.claimPhrase(cl, g, s)
		}
		if e.reading.isNear() {
			e.claimNear(cl, g, s)
		}
	}
	switch {
	case !e.reading.Moved || c.doubtful:
	case c.doubtfulMoves:
		cl.exact = false
		e.allowMovedUnits(cl, s)
	default:
		for _, u := range c.moved[s] {
			e.claimMovedUnit(cl, u)
		}
	}
}

// claimPhrase claims a phrase that stands more often on side s of g than on the other.
func (e *Expectation) claimPhrase(cl *claim, g *group, s side) {
	ts := g.tokens[s]
	occ := e.reading.occurrences(cl.key, ts)
	if len(occ) <= len(e.reading.occurrences(cl.key, g.tokens[s.other()])) {
		return
	}
	p := requiredPlace{blocks: blockIndexes(ts)}
	for _, o := range occ {
		cl.may[ts[o.first].block] = true
	}
	if !g.complete || len(g.alignments) > 1 {
		cl.exact = false
	} else {
		ch := g.changes(g.alignments[0], s)
		for _, o := range occ {
			if ch.touches(o) {
				r := e.span(s, ts, o.first, o.last)
				p.occurrences = append(p.occurrences, r)
				cl.changed[r] = true
			}
		}
	}
	cl.must = append(cl.must, p)
}

// span returns the bytes that tokens first to last take in the version's text.
func (e *Expectation) span(s side, ts []token, first, last int) [2]int {
	p := e.change.pages[s]
	return [2]int{p[ts[first].block].Offset + ts[first].start, p[ts[last].block].Offset + ts[last].end}
}

// claimTerms claims a keyword whose terms are all in one difference of g.
func (e *Expectation) claimTerms(cl *claim, g *group, s side) {
	ts := g.tokens[s]
	here, there := e.reading.termCounts(cl.key, ts), e.reading.termCounts(cl.key, g.tokens[s.other()])
	rises := false
	for t, n := range here {
		if n == 0 {
			return
		}
		rises = rises || n > there[t]
	}
	if !rises {
		return
	}
	always := g.complete
	var sure, maybe map[int]bool
	for _, m := range g.alignments {
		ch := g.changes(m, s)
		strict := e.blocksWithTerms(cl.key, ts, ch.differences(true), ch, here, there)
		loose := e.blocksWithTerms(cl.key, ts, ch.differences(false), ch, here, there)
		if len(strict) == 0 {
			always = false
		}
		sure, maybe = union(sure, strict), union(maybe, loose)
	}
	if !g.complete { // other alignments may bring together what these do not
		maybe = union(maybe, setOf(blockIndexes(ts)))
	}
	for b := range maybe {
		cl.may[b] = true
	}
	if always {
		p := requiredPlace{}
		for b := range sure {
			p.blocks = append(p.blocks, b)
		}
		cl.must = append(cl.must, p)
	}
}

// blocksWithTerms returns the blocks of those differences that hold every term of k, one of
// them in a changed token and more often in the group than before.
func (e *Expectation) blocksWithTerms(k keyword, ts []token, differences []occurrence, ch sideChanges, here, there map[string]int) map[int]bool {
	found := make(map[int]bool)
	for _, d := range differences {
		part := ts[d.first : d.last+1]
		all, rises := true, false
		for _, n := range e.reading.termCounts(k, part) {
			all = all && n > 0
		}
		for i := d.first; i <= d.last; i++ {
			if ts[i].isBorder() || !ch.changed[i] || e.reading.skips(k, ts[i].text) {
				continue
			}
			w := e.reading.normalize(ts[i].text)
			rises = rises || here[w] > there[w]
		}
		if all && rises {
			for _, b := range blockIndexes(part) {
				found[b] = true
			}
		}
	}
	return found
}

// claimNear claims the changes in those blocks of side s of g, or units with NearRow, that hold k.
func (e *Expectation) claimNear(cl *claim, g *group, s side) {
	for _, ts := range e.nearParts(g, s) {
		if !e.holds(cl.key, ts) {
			continue
		}
		cl.exact = false
		blocks := setOf(blockIndexes(ts))
		certain := g.complete
		for b := range blocks {
			cl.may[b] = true
		}
		for _, m := range g.alignments {
			ch, changed := g.changes(m, s), false
			for i, t := range ch.tokens {
				changed = changed || ch.changed[i] && !t.isBorder() && blocks[t.block]
			}
			certain = certain && changed
		}
		if certain {
			cl.must = append(cl.must, requiredPlace{blocks: blockIndexes(ts)})
		}
	}
}

// nearParts returns the tokens of side s of g by block, or by unit.
func (e *Expectation) nearParts(g *group, s side) (parts [][]token) {
	if e.reading.NearRow {
		for _, u := range e.change.units[s] {
			if slices.ContainsFunc(g.tokens[s], func(t token) bool { return t.block == u.tokens[0].block }) {
				parts = append(parts, u.tokens)
			}
		}
		return parts
	}
	last := -1
	for _, t := range g.tokens[s] {
		if t.block != last {
			parts, last = append(parts, nil), t.block
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], t)
	}
	return parts
}

// holds reports whether ts hold k, as a phrase or all its words.
func (e *Expectation) holds(k keyword, ts []token) bool {
	if !e.reading.Terms {
		return len(e.reading.occurrences(k, ts)) > 0
	}
	for _, n := range e.reading.termCounts(k, ts) {
		if n == 0 {
			return false
		}
	}
	return true
}

// claimMovedUnit claims what stands in a unit that moved.
func (e *Expectation) claimMovedUnit(cl *claim, u unit) {
	p := requiredPlace{blocks: blockIndexes(u.tokens)}
	if !e.reading.Terms {
		for _, o := range e.reading.occurrences(cl.key, u.tokens) {
			cl.exact = false
			cl.may[u.tokens[o.first].block] = true
		}
	} else {
		for _, n := range e.reading.termCounts(cl.key, u.tokens) {
			if n == 0 {
				return
			}
		}
		cl.exact = false
		for _, b := range p.blocks {
			cl.may[b] = true
		}
		if len(p.blocks) > 1 {
			return // whether the terms may be in different cells is not said
		}
	}
	for _, b := range p.blocks {
		if cl.may[b] {
			cl.must = append(cl.must, p)
			return
		}
	}
}

// allowAnywhere allows the keyword wherever it stands in ts, or beside it.
func (e *Expectation) allowAnywhere(cl *claim, ts []token) {
	if e.reading.isNear() && e.holds(cl.key, ts) {
		for _, b := range blockIndexes(ts) {
			cl.may[b] = true
		}
		return
	}
	if !e.reading.Terms {
		for _, o := range e.reading.occurrences(cl.key, ts) {
			cl.may[ts[o.first].block] = true
		}
		return
	}
	for _, n := range e.reading.termCounts(cl.key, ts) {
		if n == 0 {
			return
		}
	}
	for _, b := range blockIndexes(ts) {
		cl.may[b] = true
	}
}

// allowMovedUnits allows the keyword in every unit that may have moved.
func (e *Expectation) allowMovedUnits(cl *claim, s side) {
	for _, u := range e.change.pairs[s] {
		e.allowAnywhere(cl, u.tokens)
	}
}

func setOf(bs []int) map[int]bool {
	m := make(map[int]bool)
	for _, b := range bs {
		m[b] = true
	}
	return m
}

func union(a, b map[int]bool) map[int]bool {
	if a == nil {
		a = make(map[int]bool)
	}
	for k := range b {
		a[k] = true
	}
	return a
}

// String lists what must be reported, and in brackets what may be.
func (e *Expectation) String() string {
	var ss []string
	for _, c := range e.claims {
		s := fmt.Sprintf("%s %q", c.event, c.key.spelling)
		if len(c.must) == 0 {
			s = "(" + s + ")"
		}
		ss = append(ss, s)
	}
	return strings.Join(ss, ", ")
}
