package match

import "github.com/vokter/vokter/pipeline"

// term notes that a term of p, a keyword whose terms may stand in any order, is token i of
// a window, where that is within a difference that holds all the others too.
func (s *search) term(p int32, side, window, i int) {
	w := &s.sides[side][window]
	k := w.showing(i)
	if k < 0 {
		return
	}
	t := s.tally(p)
	here := position{window, k + 1}
	if t.read[side] == here {
		return
	}
	t.read[side] = here
	pl := place{window: window, shown: k, full: w.shown[k]}
	if s.terms(p, side, &pl) {
		s.note(t, spot{p, side, window, k, 0}, pl)
	}
}

// terms reports whether the difference at pl holds every term of p, at least one of them
// in a changed token and with a count in the group that is higher on this side. It makes
// the places of the terms, as near to that one as can be, the core.
func (s *search) terms(p int32, side int, pl *place) bool {
	pat := &s.x.patterns[p]
	w := &s.sides[side][pl.window]
	at := s.stream(w, pat.class, w.shown[pl.shown]).places()
	anchor := -1
	for _, t := range pat.terms {
		if len(at[t]) == 0 {
			return false
		}
		if !s.risen(pat.class, t, side) {
			continue
		}
		for _, i := range at[t] {
			if (anchor < 0 || i < anchor) && w.changed(i) {
				anchor = i
			}
		}
	}
	if anchor < 0 {
		return false
	}
	pl.core = pipeline.Span{anchor, anchor + 1}
	for _, t := range pat.terms {
		best := at[t][0]
		for _, i := range at[t] {
			if abs(i-anchor) < abs(best-anchor) {
				best = i
			}
		}
		pl.tokens = append(pl.tokens, best)
		pl.core = union(pl.core, pipeline.Span{best, best + 1})
	}
	return true
}

// stream returns the stretch r of w as class reads it, which several keywords may ask for.
func (s *search) stream(w *window, class uint8, r pipeline.Span) *stream {
	k := reading{w, class, r}
	st := s.streams[k]
	if st == nil {
		st = s.x.read(w, class, r, s.x.keep(class, w))
		s.streams[k] = st
	}
	return st
}

// risen reports whether side holds more of term t than the other side. Only changed
// tokens are counted: all others stand on both sides.
func (s *search) risen(class uint8, t uint32, side int) bool {
	if s.moved {
		return true
	}
	net, ok := s.net[class]
	if !ok {
		net = map[uint32]int{}
		for side, sign := range [2]int{older: -1, newer: 1} {
			for i := range s.sides[side] {
				w := &s.sides[side][i]
				for _, e := range w.edits {
					for _, t := range s.stream(w, class, e).terms {
						if t != 0 {
							net[t] += sign
						}
					}
				}
			}
		}
		if s.net == nil {
			s.net = map[uint8]map[uint32]int{}
		}
		s.net[class] = net
	}
	if side == older {
		return net[t] < 0
	}
	return net[t] > 0
}

func abs(n int) int { return max(n, -n) }
