package oracle

// MinChange is the smallest change that a subscription is told of: so many tokens, or a share of the
// longer version in hundredths of a percent. The zero MinChange is every change.
type MinChange struct{ Tokens, Share int }

// admits reports whether a change of size tokens, in versions of which the longer has length tokens, is
// large enough.
func (m MinChange) admits(size, length int) bool {
	return size >= m.Tokens && size*100*100 >= m.Share*length
}

// changedTokens returns how many tokens changed, the least and the most that the behaviour leaves open, and how
// many tokens the longer version has.
func (c *Change) changedTokens(moved bool) (least, most, length int) {
	var all [2]int
	for s := range c.units {
		for _, u := range c.units[s] {
			all[s] += u.length
		}
	}
	length = max(all[oldSide], all[newSide])
	var low, high [2]int // tokens that are only on one side
	for s := range low {
		if c.doubtful {
			high[s] = all[s]
			continue
		}
		for _, g := range c.groups {
			a, b := g.changedTokens(side(s))
			low[s], high[s] = low[s]+a, high[s]+b
		}
	}
	least, most = max(low[oldSide], low[newSide]), max(high[oldSide], high[newSide])
	switch {
	case !moved:
	case c.doubtful || c.doubtfulMoves:
		most += length
	default:
		n := 0
		for _, u := range c.moved[newSide] {
			n += u.length
		}
		least, most = least+n, most+n
	}
	return least, most, length
}

// changedTokens returns how many tokens of side s are on no other side, at least and at most.
func (g *group) changedTokens(s side) (least, most int) {
	words := func(ts []token) int {
		n := 0
		for _, t := range ts {
			if !t.isBorder() {
				n++
			}
		}
		return n
	}
	n := words(g.tokens[s])
	if !g.complete {
		return max(n-words(g.tokens[s.other()]), 0), n
	}
	for k, m := range g.alignments {
		d := 0
		for i, changed := range g.changes(m, s).changed {
			if changed && !g.tokens[s][i].isBorder() {
				d++
			}
		}
		if k == 0 {
			least = d
		}
		least, most = min(least, d), max(most, d)
	}
	return least, most
}
