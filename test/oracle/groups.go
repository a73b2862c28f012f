package oracle

import "slices"

// group is a group of blocks that belong together, by side.
type group struct {
	tokens [2][]token
	// alignments are all shortest diffs of the exact tokens, or few of them if !complete.
	alignments []alignment
	complete   bool
}

// Change is what differs between two versions, as far as it is beyond doubt.
type Change struct {
	pages  [2]Page
	groups []*group
	// moved holds the units that only changed place, by side.
	moved [2][]unit
	// doubtful says that the behaviour leaves open which blocks belong together; unpaired then
	// holds all that may be news. doubtfulMoves says it of moved.
	doubtful      bool
	doubtfulMoves bool
	unpaired      [2][]token
	pairs         [2][]unit
}

// maxAlignments bounds how many shortest diffs of one group are looked at.
const maxAlignments = 64

// Compare finds the groups of blocks between two versions.
func Compare(old, new Page) *Change {
	c := &Change{pages: [2]Page{old, new}}
	us := [2][]unit{units(old), units(new)}
	rest := c.pairEqualUnits(us)
	if c.doubtful {
		rest, c.groups = us, nil // whatever is paired with what
	}
	for s := range rest {
		for _, u := range rest[s] {
			c.unpaired[s] = append(c.unpaired[s], u.tokens...)
		}
	}
	if c.doubtful {
		return c
	}
	together, ok := pairRelatedUnits(rest[oldSide], rest[newSide])
	if c.doubtful = !ok; ok {
		c.buildGroups(rest, together)
	}
	return c
}

// Doubtful reports whether the behaviour leaves open what the change consists of.
func (c *Change) Doubtful() bool { return c.doubtful }

// News reports whether the change must be told: a block moved, or the words of a group differ.
// It is false where the behaviour leaves that open.
func (c *Change) News() bool {
	if c.doubtful {
		return false
	}
	if len(c.moved[oldSide]) > 0 && !c.doubtfulMoves {
		return true
	}
	words := func(ts []token) []string {
		var ws []string
		for _, t := range ts {
			if !t.isBorder() {
				ws = append(ws, t.text)
			}
		}
		return ws
	}
	return slices.ContainsFunc(c.groups, func(g *group) bool {
		return !slices.Equal(words(g.tokens[oldSide]), words(g.tokens[newSide]))
	})
}

// pairEqualUnits takes out the equal units and returns the others.
func (c *Change) pairEqualUnits(us [2][]unit) (rest [2][]unit) {
	var keys [2][]string
	count := [2]map[string]int{{}, {}}
	exact := make(map[string]map[string]bool)
	for s := range us {
		for _, u := range us[s] {
			keys[s] = append(keys[s], u.folded)
			count[s][u.folded]++
			if exact[u.folded] == nil {
				exact[u.folded] = make(map[string]bool)
			}
			exact[u.folded][u.exact] = true
		}
	}
	m, unique := newLCS(keys[oldSide], keys[newSide]).unique()
	if !unique {
		c.doubtfulMoves = true
	}
	for k, n := range count[oldSide] {
		o := count[newSide][k]
		if o == 0 {
			continue
		}
		if !unique && n != o || max(n, o) > 1 && len(exact[k]) > 1 {
			c.doubtful = true // which of them is paired, and with which
		}
	}
	taken := make([]bool, len(us[newSide]))
	partner := slices.Clone(m)
	for _, j := range m {
		if j >= 0 {
			taken[j] = true
		}
	}
	for i, u := range us[oldSide] {
		if partner[i] >= 0 {
			continue
		}
		for j, v := range us[newSide] {
			if !taken[j] && u.folded == v.folded {
				partner[i], taken[j] = j, true
				break
			}
		}
	}
	for i, u := range us[oldSide] {
		if partner[i] < 0 {
			rest[oldSide] = append(rest[oldSide], u)
			continue
		}
		v := us[newSide][partner[i]]
		c.pairs[oldSide], c.pairs[newSide] = append(c.pairs[oldSide], u), append(c.pairs[newSide], v)
		switch moved := m[i] < 0; {
		case u.exact != v.exact:
			c.groups = append(c.groups, newGroup(u.tokens, v.tokens))
			if moved {
				c.doubtfulMoves = true // edited too: whether it counts as moved is not said
			}
		case moved:
			c.moved[oldSide], c.moved[newSide] = append(c.moved[oldSide], u), append(c.moved[newSide], v)
		}
	}
	for j, v := range us[newSide] {
		if !taken[j] {
			rest[newSide] = append(rest[newSide], v)
		}
	}
	return rest
}

// unitPair says that an old and a new unit belong together.
type unitPair struct{ old, new int }

// pairRelatedUnits finds which of the left-over units belong together directly; ok is false
// where that depends on a choice.
func pairRelatedUnits(old, new []unit) (es []unitPair, ok bool) {
	if len(old) == 0 || len(new) == 0 {
		return nil, true
	}
	words, at := flattenUnits(old)
	words2, at2 := flattenUnits(new)
	l := newLCS(words, words2)
	free := [2][]bool{make([]bool, len(old)), make([]bool, len(new))}
	for i := range old {
		free[oldSide][i] = true
	}
	for j := range new {
		free[newSide][j] = true
	}
	m, unique := l.unique()
	bound := l.maxKept(at, at2)
	for i, u := range old {
		for j, v := range new {
			enough := func(kept int) bool {
				small, large := min(u.length, v.length), max(u.length, v.length)
				return 2*kept >= small && (4*small >= large || kept >= 5)
			}
			if !enough(bound[[2]int{i, j}]) {
				continue // in no shortest diff
			}
			var least, most int
			if unique {
				for x, y := range m {
					if y >= 0 && at[x] == i && at2[y] == j && words[x] != "" {
						least++
					}
				}
				most = least
			} else {
				least, most = l.keptRange(func(x, y int) bool { return words[x] != "" && at[x] == i && at2[y] == j })
			}
			if enough(least) != enough(most) {
				return nil, false
			}
			if enough(least) {
				es = append(es, unitPair{i, j})
				free[oldSide][i], free[newSide][j] = false, false
			}
		}
	}
	more, ok := pairMovedUnits(old, new, free)
	return append(es, more...), ok
}

// flattenUnits returns the folded tokens of units, "" for a border, and the unit of each.
func flattenUnits(us []unit) (words []string, at []int) {
	for i, u := range us {
		for _, t := range u.tokens {
			words, at = append(words, fold(t.text)), append(at, i)
		}
	}
	return words, at
}

// pairMovedUnits pairs the units that were moved and edited: those free of both sides that have a
// token for themselves and at least half of the larger one's tokens in common.
func pairMovedUnits(old, new []unit, free [2][]bool) (es []unitPair, ok bool) {
	in := make(map[string][2]int) // in how many free units of each side a token is
	note := func(us []unit, s side) {
		for i, u := range us {
			if !free[s][i] {
				continue
			}
			for w := range tokenCounts(u) {
				n := in[w]
				n[s]++
				in[w] = n
			}
		}
	}
	note(old, oldSide)
	note(new, newSide)
	degree := [2][]int{make([]int, len(old)), make([]int, len(new))}
	for i, u := range old {
		if !free[oldSide][i] {
			continue
		}
		a := tokenCounts(u)
		for j, v := range new {
			if !free[newSide][j] {
				continue
			}
			own := false
			for w := range tokenCounts(v) {
				own = own || a[w] > 0 && in[w] == [2]int{1, 1}
			}
			if own && 2*commonTokens(a, tokenCounts(v)) >= max(u.length, v.length) {
				es = append(es, unitPair{i, j})
				degree[oldSide][i]++
				degree[newSide][j]++
			}
		}
	}
	for _, e := range es {
		if degree[oldSide][e.old] > 1 || degree[newSide][e.new] > 1 {
			return nil, false // several candidates: left open whose choice counts
		}
	}
	return es, true
}

// commonTokens returns how many tokens two units have in common, with repeats.
func commonTokens(a, b map[string]int) int {
	n := 0
	for w, k := range b {
		n += min(k, a[w])
	}
	return n
}

func tokenCounts(u unit) map[string]int {
	n := make(map[string]int)
	for _, w := range foldedWords(u.tokens) {
		n[w]++
	}
	return n
}

// buildGroups makes the groups of the left-over units: belonging together is transitive.
func (c *Change) buildGroups(rest [2][]unit, es []unitPair) {
	label := [2][]int{make([]int, len(rest[oldSide])), make([]int, len(rest[newSide]))}
	next := 0
	for s := range label {
		for i := range label[s] {
			label[s][i] = next
			next++
		}
	}
	for changed := true; changed; {
		changed = false
		for _, e := range es {
			a, b := &label[oldSide][e.old], &label[newSide][e.new]
			if *a != *b {
				*a, *b = min(*a, *b), min(*a, *b)
				changed = true
			}
		}
	}
	for g := range next {
		var ts [2][]token
		for s := range label {
			for i, of := range label[s] {
				if of == g {
					ts[s] = append(ts[s], rest[s][i].tokens...)
				}
			}
		}
		if len(ts[oldSide])+len(ts[newSide]) > 0 {
			c.groups = append(c.groups, newGroup(ts[oldSide], ts[newSide]))
		}
	}
}

// newGroup diffs the exact tokens of a group.
func newGroup(old, new []token) *group {
	g := &group{tokens: [2][]token{old, new}}
	exact := func(ts []token) []string {
		ss := make([]string, len(ts))
		for i, t := range ts {
			ss[i] = t.text
		}
		return ss
	}
	l := newLCS(exact(old), exact(new))
	if g.alignments, g.complete = l.all(maxAlignments); !g.complete {
		a, b := l.extremes()
		g.alignments = []alignment{a, b}
	}
	return g
}
