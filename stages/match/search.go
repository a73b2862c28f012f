package match

import (
	"sort"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// The sides of a group.
const (
	oldSide = iota
	newSide
)

var eventOfSide = [2]pipeline.Event{oldSide: pipeline.Removed, newSide: pipeline.Added}

// place is where a keyword is reported: a difference, or a deletion or insertion that joined or
// split an occurrence.
type place struct {
	window int
	// shownEdit is the index of the difference in the window; -1 for an empty edit.
	shownEdit int
	// full is the span of tokens for the text, core that of the occurrence, around which a long
	// text is cut.
	full, core flow.Span
	// tokens are those of the keyword, if they need not be adjacent.
	tokens []int
	// near is where the keyword stands, if that is not in the difference but beside it.
	near *nearby
}

// placeKey identifies a place of a pattern.
type placeKey struct {
	pattern         int32
	side, window    int
	shownEdit, edit int
}

// maxPlaces bounds the places that are stored for one group and the hits for one change, in
// addition to the first ones of each pattern. Further ones are only counted.
const maxPlaces = 50_000

// tally counts the occurrences of one pattern in one group.
type tally struct {
	counts [2]int // occurrences that touch an edit
	places [2][]place
	// onlyCounted counts the places beyond maxPlaces. lastCounted are the last of these: at a
	// difference, and at an empty edit.
	onlyCounted [2]int
	lastCounted [2][2]position
	// lastSearched is the difference in which terms were last looked for.
	lastSearched [2]position
}

// position orders the places of a pattern. ordinal is the number of the edit, from 1.
type position struct{ window, ordinal int }

// streamKey identifies a stream: a stretch of a window, and a class.
type streamKey struct {
	window *window
	class  uint8
	region flow.Span
}

// search finds the patterns of an index in one group.
type search struct {
	x            *patternIndex
	moved        bool
	sides        [2][]window
	passages     [2][]flow.Passage
	whole        bool // the group is an item that only one version has
	tallies      map[int32]*tally
	placeIndexes map[placeKey]int // indexes into tally.places
	placeCount   int              // places of all tallies
	streams      map[streamKey]*termStream
	// netCounts counts, by class, how many more of each term the changed tokens of the new side have.
	netCounts map[uint8]map[uint32]int
}

func newSearch(x *patternIndex, g *flow.Group) *search {
	s := &search{
		x: x, moved: g.Moved, whole: g.IsWhole(), passages: [2][]flow.Passage{oldSide: g.OldPassages, newSide: g.NewPassages},
		tallies: map[int32]*tally{}, placeIndexes: map[placeKey]int{}, streams: map[streamKey]*termStream{},
	}
	if !g.Coarse {
		s.sides = [2][]window{oldSide: make([]window, 0, len(g.Old)), newSide: make([]window, 0, len(g.New))}
	}
	for side, w := range eachWindow(g) {
		if !g.Coarse || x.containsTerm(&w) {
			s.sides[side] = append(s.sides[side], w)
		}
	}
	return s
}

// run calls report for each place at which a pattern of the index is added or removed in the
// group; for each pattern in the order of sides and places. It calls count with the number of
// places that are only counted. At last come the differences beside a keyword, for those that ask for them.
func (s *search) run(report func(p int32, side int, pl place), count func(p int32, side, n int)) {
	for side := range s.sides {
		for i := range s.sides[side] {
			s.x.scanEdits(&s.sides[side][i], func(p int32, st *termStream, k int) {
				if s.x.patterns[p].anyOrder {
					s.addTermPlace(p, side, i, st.tokens[k])
				} else if tokens := s.x.patterns[p].occurrenceAt(st, k); tokens != nil {
					s.addOccurrence(p, side, i, tokens)
				}
			})
		}
	}
	for p, t := range s.tallies {
		for side := range t.places {
			if !s.isReported(p, t, side) {
				continue
			}
			for _, pl := range t.places[side] {
				report(p, side, pl)
			}
			if t.onlyCounted[side] > 0 {
				count(p, side, t.onlyCounted[side])
			}
		}
	}
	s.reportNear(report)
}

// isReported reports whether the places on a side are reported. In a moved block all are. Those of
// a phrase are if that side has more of them. Those of terms are stored only if they are reported.
func (s *search) isReported(p int32, t *tally, side int) bool {
	return s.moved || s.x.patterns[p].anyOrder || t.counts[side] > t.counts[1-side]
}

func (s *search) tallyOf(p int32) *tally {
	t := s.tallies[p]
	if t == nil {
		t = &tally{}
		s.tallies[p] = t
	}
	return t
}

// addOccurrence counts the occurrence of phrase p in tokens if it touches an edit, and notes where
// to report it: at each difference within it, even one of skipped stop words, or else at the
// edit that removed something from it or inserted something.
func (s *search) addOccurrence(p int32, side, i int, tokens []int) {
	w := &s.sides[side][i]
	found := flow.Span{tokens[0], tokens[len(tokens)-1] + 1}
	from, to := w.editsTouching(found)
	if from == to {
		return
	}
	t := s.tallyOf(p)
	t.counts[side]++
	shown := -1
	for _, e := range w.edits[from:to] {
		if k := w.shownEditAt(e[0]); e[0] < e[1] && k != shown {
			s.addPlace(t, placeKey{p, side, i, k, 0}, place{full: w.shownEdits[k], core: found})
			shown = k
		}
	}
	if shown < 0 {
		s.addPlace(t, placeKey{p, side, i, -1, from}, place{full: found, core: found})
	}
}

// addPlace adds an occurrence, which is the core of pl, to the place at. Occurrences of a pattern
// arrive in the order of the text.
func (s *search) addPlace(t *tally, at placeKey, pl place) {
	places := &t.places[at.side]
	pl.window, pl.shownEdit, pl.full = at.window, at.shownEdit, union(pl.full, pl.core)
	n, ok := s.placeIndexes[at]
	switch {
	case ok:
		(*places)[n].full = union((*places)[n].full, pl.core)
	case s.placeCount < maxPlaces || len(*places) == 0:
		s.placeCount++
		s.placeIndexes[at] = len(*places)
		*places = append(*places, pl)
	default:
		last, here := &t.lastCounted[at.side][0], position{at.window, at.shownEdit + 1}
		if at.shownEdit < 0 {
			last, here = &t.lastCounted[at.side][1], position{at.window, at.edit + 1}
		}
		if here.window > last.window || here.window == last.window && here.ordinal > last.ordinal {
			*last = here
			t.onlyCounted[at.side]++
		}
	}
}

func union(a, b flow.Span) flow.Span {
	return flow.Span{min(a[0], b[0]), max(a[1], b[1])}
}

// addTermPlace notes that token i of a window is a term of p, a keyword whose terms may be in any
// order, if it is within a difference that contains all terms of p.
func (s *search) addTermPlace(p int32, side, window, i int) {
	w := &s.sides[side][window]
	k := w.shownEditAt(i)
	if k < 0 {
		return
	}
	t := s.tallyOf(p)
	here := position{window, k + 1}
	if t.lastSearched[side] == here {
		return
	}
	t.lastSearched[side] = here
	pl := place{window: window, shownEdit: k, full: w.shownEdits[k]}
	if s.findAllTerms(p, side, &pl) {
		s.addPlace(t, placeKey{p, side, window, k, 0}, pl)
	}
}

// findAllTerms reports whether the difference at pl contains every term of p, and at least one of
// them in a changed token and more often on this side of the group. The core of pl becomes that
// token and the nearest ones of the other terms.
func (s *search) findAllTerms(p int32, side int, pl *place) bool {
	pat := &s.x.patterns[p]
	w := &s.sides[side][pl.window]
	at := s.cachedStream(w, pat.class, w.shownEdits[pl.shownEdit]).tokensByTerm()
	anchor := -1
	for _, t := range pat.terms {
		if len(at[t]) == 0 {
			return false
		}
		if !s.isMoreFrequent(pat.class, t, side) {
			continue
		}
		for _, i := range at[t] {
			if (anchor < 0 || i < anchor) && w.isChanged(i) {
				anchor = i
			}
		}
	}
	if anchor < 0 {
		return false
	}
	pl.core = flow.Span{anchor, anchor + 1}
	for _, t := range pat.terms {
		best := at[t][0]
		for _, i := range at[t] {
			if abs(i-anchor) < abs(best-anchor) {
				best = i
			}
		}
		pl.tokens = append(pl.tokens, best)
		pl.core = union(pl.core, flow.Span{best, best + 1})
	}
	return true
}

// cachedStream returns the stretch r of w, normalized for class. Keywords share it.
func (s *search) cachedStream(w *window, class uint8, r flow.Span) *termStream {
	k := streamKey{w, class, r}
	st := s.streams[k]
	if st == nil {
		st = s.x.normalizeRegion(w, class, r, s.x.keepFunc(class, w))
		s.streams[k] = st
	}
	return st
}

// isMoreFrequent reports whether side has more of term t than the other side. Only changed tokens
// are counted: all others are on both sides.
func (s *search) isMoreFrequent(class uint8, t uint32, side int) bool {
	if s.moved {
		return true
	}
	net, ok := s.netCounts[class]
	if !ok {
		net = map[uint32]int{}
		for side, sign := range [2]int{oldSide: -1, newSide: 1} {
			for i := range s.sides[side] {
				w := &s.sides[side][i]
				for _, e := range w.edits {
					for _, t := range s.cachedStream(w, class, e).terms {
						if t != 0 {
							net[t] += sign
						}
					}
				}
			}
		}
		if s.netCounts == nil {
			s.netCounts = map[uint8]map[uint32]int{}
		}
		s.netCounts[class] = net
	}
	if side == oldSide {
		return net[t] < 0
	}
	return net[t] > 0
}

func abs(n int) int { return max(n, -n) }

// window is a flow.Window prepared for searching.
type window struct {
	*flow.Window
	// edits are Window.Edits, or for a moved block the whole window.
	edits []flow.Span
	// shownEdits are the edits as they are displayed; see flow.ShownEdits.
	shownEdits []flow.Span
}

func newWindow(w *flow.Window, moved bool) window {
	v := window{Window: w, edits: w.Edits}
	if moved {
		v.edits = []flow.Span{{0, len(w.Tokens)}}
	}
	v.shownEdits = flow.ShownEdits(v.edits)
	return v
}

// token returns token i.
func (w *window) token(i int) string { return w.Text[w.Tokens[i][0]:w.Tokens[i][1]] }

// editsTouching returns the range of edits that the tokens of s touch: edits that contain one of
// them, and empty edits between them.
func (w *window) editsTouching(s flow.Span) (from, to int) {
	from = sort.Search(len(w.edits), func(i int) bool { return w.edits[i][1] > s[0] })
	to = from
	for to < len(w.edits) && w.edits[to][0] < s[1] {
		to++
	}
	return from, to
}

// shownEditAt returns the index in shown of the edit that contains token i, or -1.
func (w *window) shownEditAt(i int) int {
	k := sort.Search(len(w.shownEdits), func(k int) bool { return w.shownEdits[k][1] > i })
	if k < len(w.shownEdits) && w.shownEdits[k][0] <= i {
		return k
	}
	return -1
}

// isChanged reports whether token i is in an edit.
func (w *window) isChanged(i int) bool {
	k := sort.Search(len(w.edits), func(k int) bool { return w.edits[k][1] > i })
	return k < len(w.edits) && w.edits[k][0] <= i
}

// searchRegions returns the spans of tokens that contain every occurrence which touches an edit: the
// shown edits, and reach tokens before and after each edit, not counting tokens that keep
// rejects.
func (w *window) searchRegions(reach int, keep func(i int) bool) []flow.Span {
	var out []flow.Span
	for _, e := range w.edits {
		if k := w.shownEditAt(e[0]); k >= 0 {
			e = w.shownEdits[k]
		}
		left, right := e[0], e[1]
		for n := reach; left > 0 && n > 0; {
			if left--; keep(left) {
				n--
			}
		}
		for n := reach; right < len(w.Tokens) && n > 0; right++ {
			if keep(right) {
				n--
			}
		}
		if k := len(out) - 1; k >= 0 && left <= out[k][1] {
			out[k][1] = max(out[k][1], right)
			continue
		}
		out = append(out, flow.Span{left, right})
	}
	return out
}
