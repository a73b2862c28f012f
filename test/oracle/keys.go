package oracle

// Shares in percent, as the documentation names them.
const (
	otherKeys = 90
	sameKeys  = 33
	sameItem  = 65
)

// maxSamples is how many items of a list without a pair are looked at, on either side.
const maxSamples = 32

// longestKeyed is the most tokens that an item may have for its blocks to have its key.
const longestKeyed = 200

// verdict is what the keys of a list say.
type verdict int

const (
	untrusted verdict = iota
	trusted
	loneItems // another key is another item, however alike
	unsure    // the behaviour leaves it open
)

// verdicts are those of the lists that both pages have.
type verdicts map[uint32]verdict

// span is a number that the behaviour leaves open: least to most.
type span struct{ least, most int }

// evidence is how many items of a list speak for its keys, and how many against them.
type evidence struct{ same, other span }

func (e *evidence) note(equal bool) {
	s := &e.other
	if equal {
		s = &e.same
	}
	s.least, s.most = s.least+1, s.most+1
}

// trustLists finds what the keys of each list say.
func (c *Change) trustLists(us, rest [2][]unit, ws weights) verdicts {
	paired := c.pairedEvidence()
	items := [2]map[uint32]int{{}, {}}
	for s := range us {
		for _, u := range us[s] {
			if u.key == (Key{}) {
				continue
			}
			if items[s][u.key.List]++; !u.isItem {
				items[s][u.key.List]++ // a longer item has other blocks
			}
		}
	}
	vs := make(verdicts)
	for list, n := range items[oldSide] {
		if items[newSide][list] == 0 {
			continue
		}
		alone := func() verdict {
			if n == 1 && items[newSide][list] == 1 {
				return loneItems
			}
			e := compareSamples(samples(rest[oldSide], list), samples(rest[newSide], list), ws)
			return agree(trustIf(e.same.least >= e.other.most), trustIf(e.same.most >= e.other.least))
		}
		judge := func(same, other int) verdict {
			if same+other == 0 {
				return alone()
			}
			return trustIf(same >= 4*other)
		}
		e := paired[list]
		if e == nil {
			e = &evidence{}
		}
		v := judge(e.same.least, e.other.least)
		v = agree(v, judge(e.same.least, e.other.most))
		vs[list] = agree(v, judge(e.same.most, e.other.least))
	}
	return vs
}

// between returns what the keys of two units say; nothing where these are not of one list.
func (vs verdicts) between(u, v unit) verdict {
	if !u.key.isComparable(v.key) {
		return untrusted
	}
	return vs[u.key.List]
}

func trustIf(yes bool) verdict {
	if yes {
		return trusted
	}
	return untrusted
}

func agree(v, w verdict) verdict {
	if v != w {
		return unsure
	}
	return v
}

// pairedEvidence returns what the paired units say, by list. Where the pairs depend on a choice, those of units
// that are equal to others are open.
func (c *Change) pairedEvidence() map[uint32]*evidence {
	all := make(map[uint32]*evidence)
	of := func(list uint32) *evidence {
		if all[list] == nil {
			all[list] = &evidence{}
		}
		return all[list]
	}
	open := [2]map[string][]Key{{}, {}} // keys of units that are equal to others, by their words
	for i, u := range c.pairs[oldSide] {
		v := c.pairs[newSide][i]
		switch {
		case c.openPairs && c.repeated[u.folded]:
		case u.key.isComparable(v.key):
			of(u.key.List).note(u.key == v.key)
		}
	}
	for s := range open {
		for _, u := range c.units[s] {
			if c.openPairs && c.repeated[u.folded] {
				open[s][u.folded] = append(open[s][u.folded], u.key)
			}
		}
	}
	for words, olds := range open[oldSide] {
		for _, k := range olds {
			same, other := 0, 0
			for _, l := range open[newSide][words] {
				if !k.isComparable(l) {
					continue
				}
				if k == l {
					same = 1
				} else {
					other = 1
				}
			}
			if same+other > 0 {
				e := of(k.List)
				e.same.most, e.other.most = e.same.most+same, e.other.most+other
			}
		}
	}
	return all
}

// isComparable reports whether k and l are keys of one list.
func (k Key) isComparable(l Key) bool { return k != (Key{}) && l != (Key{}) && k.List == l.List }

func samples(us []unit, list uint32) (found []unit) {
	for _, u := range us {
		if u.key != (Key{}) && u.key.List == list && len(found) < maxSamples {
			found = append(found, u)
		}
	}
	return found
}

// compareSamples compares each old unit with the new one that is most alike: one that has none like it went.
func compareSamples(olds, news []unit, ws weights) (e evidence) {
	for _, u := range olds {
		most, equal, other := 0, false, false
		for _, v := range news {
			n := ws.common(u, v)
			if n < most || !ws.areAlike(u, v, sameItem) {
				continue
			}
			if n > most {
				most, equal, other = n, false, false
			}
			equal, other = equal || u.key == v.key, other || u.key != v.key
		}
		switch {
		case equal && other: // as alike
			e.same.most++
			e.other.most++
		default:
			e.note(!other)
		}
	}
	return e
}

// mayJoin reports whether the keys of u and v allow that they belong together; sure is false where that is open.
func (vs verdicts) mayJoin(u, v unit, ws weights) (may, sure bool) {
	if u.titled || v.titled {
		return false, true
	}
	if !u.key.isComparable(v.key) || u.key == v.key {
		return true, true
	}
	switch vs[u.key.List] {
	case trusted:
		return ws.areAlike(u, v, otherKeys), true
	case loneItems:
		return false, true
	case unsure:
		return true, false
	}
	return true, true
}

// pairKnown pairs the items that one trusted key says to be the same, if they have something in common. ok is
// false where it is open whether the key is trusted.
func (vs verdicts) pairKnown(old, new []unit, ws weights) (es []unitPair, ok bool) {
	for i, u := range old {
		for j, v := range new {
			if u.key == (Key{}) || u.key != v.key || !u.isItem || !v.isItem || vs[u.key.List] == untrusted {
				continue
			}
			if 100*ws.common(u, v) < sameKeys*min(u.weight, v.weight) {
				continue
			}
			if vs[u.key.List] == unsure {
				return nil, false
			}
			es = append(es, unitPair{i, j})
		}
	}
	return es, true
}
