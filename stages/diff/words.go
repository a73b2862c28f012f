package diff

import (
	"encoding/binary"

	"github.com/vokter/vokter/pipeline/text"
)

// joinSameWords joins units of one gap that differ in their numbers and signs alone, such as the entries of a score
// board, if no other unit of either text has the same words in this order. Numbers may name the units as well: where
// "10:00 free" and "11:00 taken" became "10:00 taken" and "11:00 free", all numbers went to other words, and the units
// with the same numbers are joined. Where only half of them did, it is open what happened.
func (r *relation) joinSameWords(p unitPairs) {
	olds, news := r.findNames(r.comparison.old, r.old), r.findNames(r.comparison.new, r.new)
	pairs := make(map[string][2]int)
	for words, i := range olds.words {
		if j, ok := news.words[words]; ok && i >= 0 && j >= 0 && r.old[i].gap == r.new[j].gap && r.mayBeNamesakes(i, j) {
			pairs[words] = [2]int{i, j}
		}
	}
	if len(pairs) == 0 {
		return
	}
	// Units with a pair have the same words in both texts.
	d := r.comparison.old
	for o, u := range p.newUnit {
		if u >= 0 && countUnitTokens(d, o) <= text.MaxItem {
			words, _ := r.wordsAndNumbers(d, d.Units[o])
			delete(pairs, words)
		}
	}
	var moved [][2]int // the units with the numbers of a pair's old one
	for _, at := range pairs {
		numbers := olds.numbersOf[at[0]]
		if k, ok := news.numbers[numbers]; ok && k >= 0 && k != at[1] && olds.numbers[numbers] >= 0 {
			moved = append(moved, [2]int{at[0], k})
		}
	}
	switch {
	case 2*len(moved) < len(pairs):
		for _, at := range pairs {
			r.joinTitled(at[0], at[1])
		}
	case len(moved) == len(pairs):
		for _, at := range moved {
			if r.old[at[0]].gap == r.new[at[1]].gap && r.mayBeNamesakes(at[0], at[1]) {
				r.joinTitled(at[0], at[1])
			}
		}
	}
}

// names are what short candidates are called: their words in order, and their numbers. A name that several have leads
// to none.
type names struct {
	words, numbers map[string]int
	numbersOf      []string
}

// findNames returns the names of all, which are units of d.
func (r *relation) findNames(d *text.Doc, all []candidate) names {
	n := names{make(map[string]int), make(map[string]int), make([]string, len(all))}
	note := func(places map[string]int, name string, place int) {
		if _, ok := places[name]; ok {
			place = several
		}
		if name != "" {
			places[name] = place
		}
	}
	for i, c := range all {
		if len(c.bag) <= text.MaxItem {
			words, numbers := r.wordsAndNumbers(d, c.Unit)
			note(n.words, words, i)
			note(n.numbers, numbers, i)
			n.numbersOf[i] = numbers
		}
	}
	return n
}

// wordsAndNumbers returns the symbols of the words and of the numbers of a unit. A sign is neither. A lone number in
// front of the words may be a rank, and is left out.
func (r *relation) wordsAndNumbers(d *text.Doc, u text.Unit) (words, numbers string) {
	var w, n []byte
	isRank := false
	for t := d.Blocks[u.FirstBlock].First; t < d.Blocks[u.LastBlock-1].Last; t++ {
		token := d.Text(t)
		symbol, _ := r.symbols.knownToken(token)
		switch folded := r.symbols.fold(token); {
		case folded[0] >= '0' && folded[0] <= '9':
			isRank = len(w)+len(n) == 0
			n = binary.LittleEndian.AppendUint32(n, uint32(symbol))
		case !text.IsSign(folded):
			w = binary.LittleEndian.AppendUint32(w, uint32(symbol))
		}
	}
	if isRank {
		n = nil
	}
	return string(w), string(n)
}
