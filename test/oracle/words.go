package oracle

import "strings"

// wordsAndNumbers returns the words and the numbers of u in order. A sign is neither. A lone number in front of the
// words may be a rank, and is none either.
func wordsAndNumbers(u unit) (words, numbers []string) {
	first := ""
	for _, w := range foldedWords(u.tokens) {
		if isSign(w) {
			continue
		}
		if first == "" {
			first = w
		}
		if strings.ContainsAny(w[:1], "0123456789") {
			numbers = append(numbers, w)
		} else {
			words = append(words, w)
		}
	}
	if len(numbers) == 1 && numbers[0] == first {
		numbers = nil
	}
	return words, numbers
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
// page; where all of these numbers are those of another new unit, it pairs these by the numbers; where half of them are,
// none. ok is false where it is open whether the keys of two of them are trusted.
func (c *Change) pairWords(us, rest [2][]unit, free [2][]bool, vs verdicts) (es []unitPair, ok bool) {
	words := func(u unit) []string { w, _ := wordsAndNumbers(u); return w }
	numbers := func(u unit) []string { _, n := wordsAndNumbers(u); return n }
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
	byNumbers, byNumbersNow := named(rest[oldSide], numbers), named(rest[newSide], numbers)
	theirs := named(rest[newSide], words)
	for name, at := range named(rest[oldSide], words) {
		there := theirs[name]
		if len(there) == 0 || len(have[name]) > 1 || len(haveNow[name]) > 1 || !mayPair(at[0], there[0]) {
			continue
		}
		es = append(es, unitPair{at[0], there[0]})
		n := strings.Join(numbers(rest[oldSide][at[0]]), " ")
		if now := byNumbersNow[n]; len(byNumbers[n]) == 1 && len(now) == 1 && now[0] != there[0] {
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
