package oracle

import (
	"slices"
	"strings"
)

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
