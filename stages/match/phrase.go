package match

import (
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// termStream is a stretch of a window, normalized for one class: the indexes of the tokens that are
// not skipped, and their terms, 0 for a term that no keyword has.
type termStream struct {
	tokens []int
	terms  []uint32
	byTerm map[uint32][]int
}

// tokensByTerm returns, for each term, the indexes of its tokens.
func (s *termStream) tokensByTerm() map[uint32][]int {
	if s.byTerm == nil {
		s.byTerm = map[uint32][]int{}
		for i, t := range s.terms {
			if t != 0 {
				s.byTerm[t] = append(s.byTerm[t], s.tokens[i])
			}
		}
	}
	return s.byTerm
}

// scanEdits calls f for each key of a pattern that it finds near an edit of w, with the stream and
// the index in it at which the key begins.
func (x *patternIndex) scanEdits(w *window, f func(p int32, s *termStream, i int)) {
	for c := range x.classes {
		keep := x.keepFunc(uint8(c), w)
		for _, r := range w.searchRegions(x.reach(), keep) {
			s := x.normalizeRegion(w, uint8(c), r, keep)
			x.lookUp(uint8(c), s, f)
		}
	}
}

// reach is how many tokens before or after an edit may belong to a phrase that touches it.
func (x *patternIndex) reach() int { return max(x.longestPhrase-1, 0) }

// keepFunc returns a function that reports whether class c keeps token i of w, rather than skipping
// it as a stop word or sign.
func (x *patternIndex) keepFunc(c uint8, w *window) func(i int) bool {
	class := x.classes[c]
	return func(i int) bool {
		word := w.token(i)
		return (!class.skipsSigns || !text.IsSign(word)) && (!class.skipsStopwords || !x.norm.IsStop(word))
	}
}

// normalizeRegion returns the region r of w, normalized for class c.
func (x *patternIndex) normalizeRegion(w *window, c uint8, r flow.Span, keep func(i int) bool) *termStream {
	s := &termStream{tokens: make([]int, 0, r[1]-r[0]), terms: make([]uint32, 0, r[1]-r[0])}
	for i := r[0]; i < r[1]; i++ {
		if keep(i) {
			s.tokens = append(s.tokens, i)
			s.terms = append(s.terms, x.dicts[c][x.norm.Term(w.token(i), x.classes[c].form)])
		}
	}
	return s
}

// lookUp calls f for each key of a pattern that begins in s.
func (x *patternIndex) lookUp(c uint8, s *termStream, f func(p int32, s *termStream, i int)) {
	for i, t := range s.terms {
		if t == 0 {
			continue
		}
		x.eachWithKey(indexKey{class: c, a: t}, func(p int32) { f(p, s, i) })
		if i+1 == len(s.terms) || s.terms[i+1] == 0 {
			continue
		}
		x.eachWithKey(indexKey{c, t, s.terms[i+1]}, func(p int32) { f(p, s, i) })
	}
}

// occurrenceAt returns the tokens of the occurrence of phrase p whose key is at i, or nil if
// there is none.
func (p *pattern) occurrenceAt(s *termStream, i int) []int {
	from := i - int(p.keyIndex)
	if from < 0 || from+len(p.terms) > len(s.terms) {
		return nil
	}
	for k, t := range p.terms {
		if s.terms[from+k] != t {
			return nil
		}
	}
	return s.tokens[from : from+len(p.terms)]
}
