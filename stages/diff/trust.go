package diff

import (
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// trust is what the keys of a list say.
type trust int

const (
	untrusted   trust = iota // nothing
	trustedKeys              // items with different keys are two, unless nearly all of their words are equal
	loneItems                // the list has one item in both texts: with another key it is another
)

// maxSamples bounds how many items of a list are compared with each other.
const maxSamples = 32

// evidence is how many items speak for the keys of a list, and how many against them.
type evidence struct{ same, other int }

func (e *evidence) note(a, b pipeline.Key) {
	if a == b {
		e.same++
	} else {
		e.other++
	}
}

// findTrust finds the lists whose keys identify their items. Units of equal words that kept their keys speak for that,
// and such as changed them against it: a list is trusted with at least four of the former to each of the latter. Where
// there are none, units without a pair decide: those that are most alike and have the same key, or that have none like
// them, and those that are most alike and have other keys.
func (r *relation) findTrust(p unitPairs) {
	if !hasKeys(r.old) || !hasKeys(r.new) {
		return
	}
	var paired [256]evidence
	a, b := r.comparison.old.Units, r.comparison.new.Units
	for o, u := range p.newUnit {
		if u >= 0 && haveOneList(a[o], b[u]) {
			paired[a[o].Key.List()].note(a[o].Key, b[u].Key)
		}
	}
	oldCount, newCount := countItems(a), countItems(b)
	for list, e := range paired {
		switch {
		case e != evidence{}:
			r.trusted[list] = trustIf(e.same >= 4*e.other)
		case oldCount[list] == 1 && newCount[list] == 1:
			r.trusted[list] = loneItems
		case oldCount[list] > 0 && newCount[list] > 0:
			e = r.compareSamples(uint8(list))
			r.trusted[list] = trustIf(e.same >= e.other)
		}
	}
}

func trustIf(yes bool) trust {
	if yes {
		return trustedKeys
	}
	return untrusted
}

func hasKeys(all []candidate) bool {
	for _, c := range all {
		if c.Key != 0 {
			return true
		}
	}
	return false
}

// countItems counts the units with a key, by list. A block of a longer item counts twice.
func countItems(units []text.Unit) (n [256]int) {
	for _, u := range units {
		if u.Key != 0 {
			if n[u.Key.List()]++; !u.Item {
				n[u.Key.List()]++
			}
		}
	}
	return n
}

// haveOneList reports whether both units have keys, of the same list.
func haveOneList(a, b text.Unit) bool {
	return a.Key != 0 && b.Key != 0 && a.Key.List() == b.Key.List()
}

// compareSamples compares units of a list that have no pair.
func (r *relation) compareSamples(list uint8) (e evidence) {
	olds, news := samplesOf(r.old, list), samplesOf(r.new, list)
	for _, a := range olds {
		var best *candidate
		var most int64
		for _, b := range news {
			if n := r.commonWeight(a, b); n > most && r.isAlike(a, b, sameItem) {
				best, most = b, n
			}
		}
		if best == nil {
			e.same++ // it went
		} else {
			e.note(a.Key, best.Key)
		}
	}
	return e
}

func samplesOf(all []candidate, list uint8) (out []*candidate) {
	for i := range all {
		if c := &all[i]; c.Key != 0 && c.Key.List() == list && len(out) < maxSamples {
			out = append(out, c)
		}
	}
	return out
}

// mayJoin reports whether the titles and the keys of a and b, which are much alike, allow that they belong together.
func (r *relation) mayJoin(a, b *candidate) bool {
	if a.titled || b.titled {
		return false
	}
	if !haveOneList(a.Unit, b.Unit) || a.Key == b.Key {
		return true
	}
	switch known := r.trusted[a.Key.List()]; {
	case known == untrusted, known == trustedKeys && r.isAlike(a, b, otherKeys):
		return true
	}
	r.otherKeys[0] = append(r.otherKeys[0], a.index)
	r.otherKeys[1] = append(r.otherKeys[1], b.index)
	return false
}

// isLikeOther reports whether an item of s is much like one of the other text that has another key.
func (c *comparison) isLikeOther(s unitGroup) bool {
	isIn := func(side int) func(int) bool {
		return func(u int) bool { return slices.Contains(c.otherKeys[side], u) }
	}
	return slices.ContainsFunc(s.old, isIn(0)) || slices.ContainsFunc(s.new, isIn(1))
}

// joinSameKeys joins the items that trusted keys say to be the same, if they have something in common: at one
// address may be another text.
func (r *relation) joinSameKeys() {
	byKey := make(map[pipeline.Key]int)
	for j, b := range r.new {
		if b.Key != 0 && b.Item && r.trusted[b.Key.List()] != untrusted {
			byKey[b.Key] = j
		}
	}
	for i := range r.old {
		a := &r.old[i]
		j, ok := byKey[a.Key]
		if !ok || !a.Item {
			continue
		}
		if b := &r.new[j]; 100*r.commonWeight(a, b) >= sameKeys*min(a.weight, b.weight) {
			r.join(i, j)
		}
	}
}
