package oracle

import "strings"

// wordsAndLabel returns the words of u in order, and its label: words and numbers up to the last number. A sign is
// neither. A lone number in front of the words may be a rank, and is no label.
func wordsAndLabel(u unit) (words, label []string) {
	var all []string
	for _, w := range foldedWords(u.tokens) {
		if isSign(w) {
			continue
		}
		all = append(all, w)
		if strings.ContainsAny(w[:1], "0123456789") {
			label = all
		} else {
			words = append(words, w)
		}
	}
	if len(label) == 1 {
		label = nil
	}
	return words, label
}

// named are units by a name of theirs. Long units have none.
func named(us []unit, name func(unit) []string) map[string][]int {
	all := make(map[string][]int)
	for i, u := range us {
		if n := strings.Join(name(u), " "); n != "" && u.length <= longestItem {
			all[n] = append(all[n], i)
		}
	}
	return all
}

// pairWords pairs the left-over units of one gap of which the words without the numbers are those of one unit of each
// page. Where all labels are those of another new unit, it pairs these by the labels; where half of them are, none. ok
// is false where it is open whether the keys of two of them are trusted.
func (c *Change) pairWords(us, rest [2][]unit, free [2][]bool, vs verdicts) (es []unitPair, ok bool) {
	words := func(u unit) []string { w, _ := wordsAndLabel(u); return w }
	label := func(u unit) []string { _, l := wordsAndLabel(u); return l }
	ok = true
	mayPair := func(i, j int) bool {
		u, v := rest[oldSide][i], rest[newSide][j]
		if u.gap != v.gap || !free[oldSide][i] || !free[newSide][j] {
			return false
		}
		known := vs.between(u, v)
		ok = ok && known != unsure
		return known == untrusted
	}
	var moved []unitPair
	have, haveNow := named(us[oldSide], words), named(us[newSide], words)
	byLabel, byLabelNow := named(rest[oldSide], label), named(rest[newSide], label)
	theirs := named(rest[newSide], words)
	for name, at := range named(rest[oldSide], words) {
		there := theirs[name]
		if len(there) == 0 || len(have[name]) > 1 || len(haveNow[name]) > 1 || !mayPair(at[0], there[0]) {
			continue
		}
		es = append(es, unitPair{at[0], there[0]})
		n := strings.Join(label(rest[oldSide][at[0]]), " ")
		if now := byLabelNow[n]; len(byLabel[n]) == 1 && len(now) == 1 && now[0] != there[0] {
			moved = append(moved, unitPair{at[0], now[0]})
		}
	}
	switch {
	case 2*len(moved) < len(es):
		return es, ok
	case len(moved) < len(es):
		return nil, ok
	}
	es = nil
	for _, e := range moved {
		if mayPair(e.old, e.new) {
			es = append(es, e)
		}
	}
	return es, ok
}
