package diff

import (
	"encoding/binary"

	"github.com/vokter/vokter/pipeline/text"
)

// joinSameWords joins units of one gap that differ in their numbers and signs alone, such as the entries of a score
// board, if no other unit of either text has the same words in this order. Labels may name the units as well: where
// "Room 1 free" and "Room 2 taken" became "Room 1 taken" and "Room 2 free", all labels went to other words, and the
// units with the same label are joined. Where only half of them did, it is open what happened.
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
	begins := make(map[uint32]bool) // the first words of pairs, by which most units are passed over
	for words := range pairs {
		begins[binary.LittleEndian.Uint32([]byte(words))] = true
	}
	for o, u := range p.newUnit {
		if u < 0 || countUnitTokens(d, o) > text.MaxItem {
			continue
		}
		first := r.symbols.fold(d.Text(d.Blocks[d.Units[o].FirstBlock].First))
		symbol, _ := r.symbols.knownToken(first)
		if begins[uint32(symbol)] || first[0] >= '0' && first[0] <= '9' || text.IsSign(first) {
			words, _ := r.wordsAndLabel(d, d.Units[o])
			delete(pairs, words)
		}
	}
	var moved [][2]int // the units with the label of a pair's old one
	for _, at := range pairs {
		label := olds.labelOf[at[0]]
		if k, ok := news.labels[label]; ok && k >= 0 && k != at[1] && olds.labels[label] >= 0 {
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

// names are what short candidates are called: their words in order, and their label. A name that several have leads
// to none.
type names struct {
	words, labels map[string]int
	labelOf       []string
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
			words, label := r.wordsAndLabel(d, c.Unit)
			note(n.words, words, i)
			note(n.labels, label, i)
			n.labelOf[i] = label
		}
	}
	return n
}

// wordsAndLabel returns the symbols of the words of a unit, and those of its label: the words and numbers up to the
// last number. A sign is neither. A lone number in front of the words may be a rank, and is no label.
func (r *relation) wordsAndLabel(d *text.Doc, u text.Unit) (words, label string) {
	var w, l []byte
	end := 0
	for t := d.Blocks[u.FirstBlock].First; t < d.Blocks[u.LastBlock-1].Last; t++ {
		folded := r.symbols.fold(d.Text(t))
		if text.IsSign(folded) {
			continue
		}
		symbol, _ := r.symbols.knownToken(folded)
		l = binary.LittleEndian.AppendUint32(l, uint32(symbol))
		if folded[0] >= '0' && folded[0] <= '9' {
			end = len(l)
		} else {
			w = binary.LittleEndian.AppendUint32(w, uint32(symbol))
		}
	}
	if isRank := end == 4; isRank {
		end = 0
	}
	return string(w), string(l[:end])
}
