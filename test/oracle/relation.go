package oracle

// Shares in percent, as the documentation names them.
const (
	nearTokens = 50
	nearWeight = 20
	nearItems  = 75
	farBlocks  = 50
	farItems   = 90
	valueSize  = 3
	// fewestLines is how many short blocks one after the other are lines of a list, and longestLine how long they are.
	fewestLines = 4
	longestLine = 20
	// titledSize is how many tokens a unit has at most that is known by its title.
	titledSize = 12
)

// weights says what tokens weigh.
type weights map[string]int

// weigh returns the weights of tokens, given all units of both pages: 1/n in n units, and an eighth of that for a
// number or a sign.
func weigh(us [2][]unit) weights {
	in := [2]map[string]int{{}, {}}
	for s := range us {
		for _, u := range us[s] {
			for w := range tokenCounts(u) {
				in[s][w]++
			}
		}
	}
	ws := make(weights)
	for s := range in {
		for w := range in[s] {
			ws[w] = 1 << 16 / max(in[oldSide][w], in[newSide][w])
			if w[0] >= '0' && w[0] <= '9' || isSign(w) {
				ws[w] /= 8
			}
			ws[w] = max(ws[w], 1)
		}
	}
	return ws
}

func (ws weights) of(counts map[string]int) (n int) {
	for w, k := range counts {
		n += k * ws[w]
	}
	return n
}

// common returns the weight of what two units have in common in any order, with repeats.
func (ws weights) common(u, v unit) int { return ws.of(commonTokens(tokenCounts(u), tokenCounts(v))) }

// areAlike reports whether two units have a share of the larger one's weight in common.
func (ws weights) areAlike(u, v unit, share int) bool {
	return 100*ws.common(u, v) >= share*max(u.weight, v.weight)
}

// unitPair says that an old and a new unit belong together.
type unitPair struct{ old, new int }

// relateUnits finds which of the left-over units belong together directly; ok is false where that depends on a
// choice.
func (c *Change) relateUnits(us, rest [2][]unit) (es []unitPair, ok bool) {
	old, new := rest[oldSide], rest[newSide]
	if len(old) == 0 || len(new) == 0 {
		return nil, true
	}
	ws := weigh(us)
	for s := range rest {
		for i, u := range rest[s] {
			rest[s][i].weight = ws.of(tokenCounts(u))
		}
	}
	free := [2][]bool{make([]bool, len(old)), make([]bool, len(new))}
	for s := range free {
		for i := range free[s] {
			free[s][i] = true
		}
	}
	join := func(pairs []unitPair) {
		es = append(es, pairs...)
		for _, e := range pairs {
			free[oldSide][e.old], free[newSide][e.new] = false, false
		}
	}
	vs := c.trustLists(us, rest, ws)
	c.trust = vs
	known, ok := vs.pairKnown(old, new, ws)
	if !ok {
		return nil, false
	}
	join(known)
	titled, ok := c.pairTitles(us, rest, free, ws, vs)
	if !ok {
		return nil, false
	}
	for _, e := range titled {
		old[e.old].titled, new[e.new].titled = true, true
	}
	join(titled)
	named, ok := c.pairWords(us, rest, free, vs)
	if !ok {
		return nil, false
	}
	for _, e := range named {
		old[e.old].titled, new[e.new].titled = true, true
	}
	join(named)
	var alone []unitPair
	for i, last := 0, -1; i < len(old); i++ {
		if old[i].gap == last {
			continue
		}
		last = old[i].gap
		olds, news := inGap(old, last), inGap(new, last)
		if len(news) == 0 {
			continue
		}
		pairs, ok := pairNeighbours(old, new, olds, news, ws, vs)
		if !ok {
			return nil, false
		}
		join(pairs)
		if len(olds) == 1 && len(news) == 1 {
			alone = append(alone, unitPair{olds[0], news[0]})
		}
	}
	moved, ok := pairMovedUnits(old, new, free, [2][]bool{findLines(us[oldSide]), findLines(us[newSide])}, ws, vs)
	if !ok {
		return nil, false
	}
	join(moved)
	for _, e := range alone {
		a, b := old[e.old], new[e.new]
		if free[oldSide][e.old] && free[newSide][e.new] && !a.isItem && !b.isItem && max(a.length, b.length) <= valueSize &&
			ws.common(a, b) == 0 {
			join([]unitPair{e})
		}
	}
	return es, true
}

// inGap returns the indexes of the units in a gap.
func inGap(us []unit, gap int) (found []int) {
	for i, u := range us {
		if u.gap == gap {
			found = append(found, i)
		}
	}
	return found
}

func areItems(u, v unit) bool { return u.isItem && v.isItem && max(u.length, v.length) <= longestItem }

// pairNeighbours pairs units of one gap by what a shortest diff of their tokens keeps.
func pairNeighbours(old, new []unit, olds, news []int, ws weights, vs verdicts) (es []unitPair, ok bool) {
	words, at := flattenUnits(old, olds)
	words2, at2 := flattenUnits(new, news)
	l := newLCS(words, words2)
	bound := l.maxKept(at, at2)
	for _, i := range olds {
		for _, j := range news {
			u, v := old[i], new[j]
			enough := func(kept, weight int) bool {
				small, large := min(u.length, v.length), max(u.length, v.length)
				if 4*small < large && kept < 5 {
					return false
				}
				if areItems(u, v) {
					return 100*weight >= nearItems*min(u.weight, v.weight)
				}
				return 100*kept >= nearTokens*small && 100*weight >= nearWeight*min(u.weight, v.weight)
			}
			if !enough(bound[[2]int{i, j}], 1<<40) {
				continue // in no shortest diff
			}
			may, sure := vs.mayJoin(u, v, ws)
			if !may {
				continue
			}
			kept := func(weigh func(word string) int) (least, most int) {
				return l.keptRange(func(x, y int) int {
					if words[x] == "" || at[x] != i || at2[y] != j {
						return 0
					}
					return weigh(words[x])
				})
			}
			least, most := kept(func(string) int { return 1 })
			lightest, heaviest := kept(func(word string) int { return ws[word] })
			if enough(least, lightest) != enough(most, heaviest) || !sure && enough(most, heaviest) {
				return nil, false
			}
			if enough(least, lightest) {
				es = append(es, unitPair{i, j})
			}
		}
	}
	return es, true
}

// flattenUnits returns the folded tokens of the chosen units, "" for a border, and the unit of each.
func flattenUnits(us []unit, chosen []int) (words []string, at []int) {
	for _, i := range chosen {
		for _, t := range us[i].tokens {
			words, at = append(words, fold(t.text)), append(at, i)
		}
	}
	return words, at
}

// pairMovedUnits pairs the units that were moved and edited: those free of both sides that have a token for
// themselves and enough of the larger one's weight in common.
func pairMovedUnits(old, new []unit, free, lines [2][]bool, ws weights, vs verdicts) (es []unitPair, ok bool) {
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
			share := farItems
			switch {
			case lines[oldSide][u.index] && lines[newSide][v.index] && u.gap != v.gap:
			case !areItems(u, v):
				share = farBlocks
			case u.gap == v.gap:
				share = nearItems
			}
			if own && ws.areAlike(u, v, share) {
				may, sure := vs.mayJoin(u, v, ws)
				if !sure {
					return nil, false
				}
				if !may {
					continue
				}
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

// findLines finds the units that are short blocks in a row of such ones.
func findLines(us []unit) []bool {
	lines := make([]bool, len(us))
	for from := range us {
		to := from
		for to < len(us) && !us[to].isItem && us[to].key == (Key{}) && us[to].length <= longestLine {
			to++
		}
		for i := from; i < to && to-from >= fewestLines; i++ {
			lines[i] = true
		}
	}
	return lines
}

// commonTokens returns the tokens that two units have in common, with repeats.
func commonTokens(a, b map[string]int) map[string]int {
	n := make(map[string]int)
	for w, k := range b {
		if k = min(k, a[w]); k > 0 {
			n[w] = k
		}
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
