package oracle

import (
	"slices"
	"strings"
)

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
	units         [2][]unit
	trust         verdicts
	long          [2][]longItem
	// openPairs says that it is open which of several equal units are paired; repeated are the words of such.
	openPairs bool
	repeated  map[string]bool
}

// maxAlignments bounds how many shortest diffs of one group are looked at.
const maxAlignments = 64

// Compare finds the groups of blocks between two versions.
func Compare(old, new Page) *Change {
	c := &Change{pages: [2]Page{old, new}}
	us, long := joinRecords(c.pages, [2][]unit{units(old), units(new)})
	c.long = long
	c.units = us
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
	together, ok := c.relateUnits(us, rest)
	if ok {
		together, ok = c.partLongItems(rest, together)
	}
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
	m, other := newLCS(keys[oldSide], keys[newSide]).extremes()
	unique := slices.Equal(m, other)
	if !unique {
		c.doubtfulMoves, c.openPairs = true, true
	}
	c.repeated = make(map[string]bool)
	for k, n := range count[oldSide] {
		o := count[newSide][k]
		if o == 0 {
			continue
		}
		c.repeated[k] = max(n, o) > 1
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
	setGaps(rest, m)
	if !unique && len(rest[oldSide]) > 0 && len(rest[newSide]) > 0 {
		others := [2][]unit{slices.Clone(rest[oldSide]), slices.Clone(rest[newSide])}
		setGaps(others, other)
		for i, u := range rest[oldSide] {
			for j, v := range rest[newSide] {
				if (u.gap == v.gap) != (others[oldSide][i].gap == others[newSide][j].gap) {
					c.doubtful = true // which units are in one gap
				}
			}
		}
	}
	return rest
}

// setGaps sets the gaps of units, given the units that stayed in order.
func setGaps(rest [2][]unit, m alignment) {
	count := func(units []unit, stayed []int) {
		for i, u := range units {
			for _, k := range stayed {
				if k < u.index {
					units[i].gap++
				}
			}
		}
	}
	var stayed [2][]int
	for i, j := range m {
		if j >= 0 {
			stayed[oldSide], stayed[newSide] = append(stayed[oldSide], i), append(stayed[newSide], j)
		}
	}
	count(rest[oldSide], stayed[oldSide])
	count(rest[newSide], stayed[newSide])
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

// newGroup diffs the plain tokens of a group.
func newGroup(old, new []token) *group {
	g := &group{tokens: [2][]token{old, new}}
	exact := func(ts []token) []string {
		ss := make([]string, len(ts))
		for i, t := range ts {
			ss[i] = plain(t.text)
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

// titleOf returns the tokens of the title of u, a unit of p: the first block of an item, or what stands in front of the
// colon of a short line.
func titleOf(p Page, u unit) []token {
	end := slices.IndexFunc(u.tokens, token.isBorder)
	switch blocks := len(blockIndexes(u.tokens)); {
	case blocks > 1 && u.isItem:
		return u.tokens[:end]
	case blocks > 1 || u.length > titledSize:
		return nil
	}
	for k := 1; k < end; k++ {
		if between := p[u.tokens[k].block].Text[u.tokens[k-1].end:u.tokens[k].start]; strings.HasPrefix(between, ": ") {
			return u.tokens[:k]
		}
	}
	return nil
}

// pairTitles pairs the left-over units whose titles tell them from all other units of their pages. ok is false where it
// is open whether the keys of two of them are trusted.
func (c *Change) pairTitles(us, rest [2][]unit, free [2][]bool, ws weights, vs verdicts) (es []unitPair, ok bool) {
	places := [2]map[string][]int{{}, {}} // of each title, in rest; -1 for a unit that has a pair
	for s := range us {
		place := make(map[int]int)
		for i, u := range rest[s] {
			place[u.index] = i
		}
		for _, u := range us[s] {
			i, left := place[u.index]
			if !left {
				i = -1
			}
			if title := joinTokens(titleOf(c.pages[s], u), fold); title != "" && (!left || u.length <= titledSize) {
				places[s][title] = append(places[s][title], i)
			}
		}
	}
	var ranks []unitPair
	for title, at := range places[oldSide] {
		there := places[newSide][title]
		if len(at) != 1 || len(there) != 1 || at[0] < 0 || there[0] < 0 || !free[oldSide][at[0]] || !free[newSide][there[0]] {
			continue
		}
		e := unitPair{at[0], there[0]}
		u, v := rest[oldSide][e.old], rest[newSide][e.new]
		switch vs.between(u, v) {
		case unsure:
			return nil, false
		case untrusted:
		default:
			continue
		}
		if !haveOneShape(u, v) {
			continue
		}
		if c.mayBeRank(u) {
			ranks = append(ranks, e)
		} else {
			es = append(es, e)
		}
	}
	for _, e := range ranks {
		for _, f := range ranks {
			for w := range tokenCounts(rest[oldSide][e.old]) {
				if e != f && ws[w] == 1<<16 && tokenCounts(rest[newSide][f.new])[w] > 0 {
					return es, true // a word went from one number to another
				}
			}
		}
	}
	return append(es, ranks...), true
}

// haveOneShape reports whether two units have as many blocks, and if these are more than two, one behind the first in
// common.
func haveOneShape(u, v unit) bool {
	a, b := strings.Split(joinTokens(u.tokens, borderOr(fold)), "\x00"), strings.Split(joinTokens(v.tokens, borderOr(fold)), "\x00")
	if len(a) != len(b) {
		return false
	}
	n := len(a) - 1 // a border stands behind each
	for i := 1; i < n; i++ {
		if a[i] == b[i] {
			return true
		}
	}
	return n <= 2
}

// borderOr returns f for words, and a mark for borders.
func borderOr(f func(string) string) func(string) string {
	return func(word string) string {
		if word == "" {
			return "\x00"
		}
		return f(word)
	}
}

// mayBeRank reports whether the title of an old unit is a whole number, alone or behind a label.
func (c *Change) mayBeRank(u unit) bool {
	title := titleOf(c.pages[oldSide], u)
	t := c.pages[oldSide][title[0].block].Text[title[0].start:title[len(title)-1].end]
	if _, value, labelled := strings.Cut(t, ": "); labelled {
		t = value
	}
	return strings.Trim(t, "0123456789") == ""
}
