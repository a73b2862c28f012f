package match

import "github.com/vokter/vokter/pipeline/flow"

// stream is a stretch of a window, normalized for one class: the indexes of the tokens that are
// not skipped, and their terms, 0 for a term that no keyword has.
type stream struct {
	at    []int
	terms []uint32
	where map[uint32][]int
}

// places returns, for each term, the indexes of its tokens.
func (s *stream) places() map[uint32][]int {
	if s.where == nil {
		s.where = map[uint32][]int{}
		for i, t := range s.terms {
			if t != 0 {
				s.where[t] = append(s.where[t], s.at[i])
			}
		}
	}
	return s.where
}

// scan calls f for each key of a pattern that it finds near an edit of w, with the stream and
// the index in it at which the key begins.
func (x *patternIndex) scan(w *window, f func(p int32, s *stream, i int)) {
	for c := range x.classes {
		keep := x.keep(uint8(c), w)
		for _, r := range w.regions(x.reach(), keep) {
			s := x.read(w, uint8(c), r, keep)
			x.lookUp(uint8(c), s, f)
		}
	}
}

// reach is how many tokens before or after an edit may belong to a phrase that touches it.
func (x *patternIndex) reach() int { return max(x.longest-1, 0) }

// keep returns a function that reports whether class c keeps token i of w, rather than skipping
// it as a stop word.
func (x *patternIndex) keep(c uint8, w *window) func(i int) bool {
	if !x.classes[c].filtered {
		return func(int) bool { return true }
	}
	return func(i int) bool { return !x.norm.IsStop(w.token(i)) }
}

// read returns the region r of w, normalized for class c.
func (x *patternIndex) read(w *window, c uint8, r flow.Span, keep func(i int) bool) *stream {
	s := &stream{at: make([]int, 0, r[1]-r[0]), terms: make([]uint32, 0, r[1]-r[0])}
	for i := r[0]; i < r[1]; i++ {
		if keep(i) {
			s.at = append(s.at, i)
			s.terms = append(s.terms, x.dicts[c][x.norm.Term(w.token(i), x.classes[c].form)])
		}
	}
	return s
}

// lookUp calls f for each key of a pattern that begins in s.
func (x *patternIndex) lookUp(c uint8, s *stream, f func(p int32, s *stream, i int)) {
	for i, t := range s.terms {
		if t == 0 {
			continue
		}
		x.with(key{class: c, a: t}, func(p int32) { f(p, s, i) })
		if i+1 == len(s.terms) || s.terms[i+1] == 0 {
			continue
		}
		x.with(key{c, t, s.terms[i+1]}, func(p int32) { f(p, s, i) })
	}
}

// occurrence returns the tokens of the occurrence of phrase p whose key is at i, or nil if
// there is none.
func (p *pattern) occurrence(s *stream, i int) []int {
	from := i - int(p.at)
	if from < 0 || from+len(p.terms) > len(s.terms) {
		return nil
	}
	for k, t := range p.terms {
		if s.terms[from+k] != t {
			return nil
		}
	}
	return s.at[from : from+len(p.terms)]
}
