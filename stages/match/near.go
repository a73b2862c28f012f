package match

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// vicinity is what a keyword must stand in to be near an edit: the blocks of an item, or one block.
type vicinity struct {
	blocks  []window // whole blocks, without edits
	windows []int    // the windows of the side, with edits, that lie in them
}

// vicinities returns the vicinities of the windows of one side, for a value of pipeline.Subscription.Near.
// A window of a block that is too long for a flow.Passage is a vicinity of its own. whole says that the windows are
// those of an item that only one version has.
func vicinities(near string, windows []window, passages []flow.Passage, whole bool) []*vicinity {
	if whole && near == pipeline.NearRow && len(windows) > 0 && isShort(windows) {
		v := &vicinity{blocks: windows}
		for i := range windows {
			v.windows = append(v.windows, i)
		}
		return []*vicinity{v}
	}
	var out []*vicinity
	byOffset := map[int]*vicinity{}
	at := func(offset int, blocks ...window) *vicinity {
		v := byOffset[offset]
		if v == nil {
			v = &vicinity{blocks: blocks}
			byOffset[offset] = v
			out = append(out, v)
		}
		return v
	}
	read := map[int][]window{} // the blocks of passages
	for i := range windows {
		w := &windows[i]
		if len(w.shownEdits) == 0 {
			continue
		}
		v := (*vicinity)(nil)
		if p := passageAround(passages, w.Window); p < 0 {
			v = at(w.Offset, *w)
		} else {
			if read[p] == nil {
				read[p] = slices.Collect(blocksOf(passages[p].Offset, passages[p].Text))
			}
			blocks := read[p]
			if near == pipeline.NearBlock {
				b, _ := slices.BinarySearchFunc(blocks, w.Offset, func(b window, at int) int { return cmp.Compare(b.Offset+len(b.Text)-1, at) })
				blocks = blocks[b : b+1]
			}
			v = at(blocks[0].Offset, blocks...)
		}
		v.windows = append(v.windows, i)
	}
	return out
}

// isShort reports whether the blocks of an item have at most text.MaxItem tokens, so that they are one line.
func isShort(blocks []window) bool {
	left := text.MaxItem
	for _, b := range blocks {
		if left -= len(b.Tokens); left < 0 {
			return false
		}
	}
	return true
}

// passageAround returns the index of the passage in which w lies, or -1.
func passageAround(passages []flow.Passage, w *flow.Window) int {
	return slices.IndexFunc(passages, func(p flow.Passage) bool {
		return p.Offset <= w.Offset && w.Offset+len(w.Text) <= p.Offset+len(p.Text)
	})
}

// blocksOf yields the blocks of a text that begins at offset, as windows without edits.
func blocksOf(offset int, s string) iter.Seq[window] {
	return func(yield func(window) bool) {
		doc := text.Analyze(s)
		for _, b := range doc.Blocks {
			w := &flow.Window{Offset: offset + b.Start, Text: s[b.Start:b.End], Tokens: make([]flow.Span, 0, b.Last-b.First)}
			for _, t := range doc.Tokens[b.First:b.Last] {
				w.Tokens = append(w.Tokens, flow.Span{t.Start - b.Start, t.End - b.Start})
			}
			if !yield(window{Window: w}) {
				return
			}
		}
	}
}

// nearby is where a keyword stands beside a difference.
type nearby struct {
	*vicinity
	block  int
	tokens flow.Span // in that block
}

// position is where the keyword begins in the text of its version, in bytes.
func (n *nearby) position() int {
	w := n.blocks[n.block].Window
	return w.Offset + w.Tokens[n.tokens[0]][0]
}

// distance is how many bytes the keyword is away from difference d of w.
func (n *nearby) distance(w *window, d flow.Span) int {
	return abs(n.position() - w.Offset - w.Tokens[d[0]][0])
}

// maxNearTokens is how many tokens a keyword may be away from a difference in a block that is too long for a
// flow.Passage.
const maxNearTokens = 64

// reaches reports whether the keyword is near enough to difference d of w.
func (n *nearby) reaches(w *window, d flow.Span) bool {
	block := n.blocks[n.block].Window
	if len(n.blocks) > 1 || len(block.Text) <= flow.MaxPassage && !block.CutLeft && !block.CutRight {
		return true
	}
	return n.tokens[0]-d[1] < maxNearTokens && d[0]-n.tokens[1] < maxNearTokens // block is w
}

// eachNear calls f for each pattern of a class with near, and each vicinity of a side in which it stands,
// with the places there.
func (s *search) eachNear(f func(p int32, side int, found []nearby)) {
	for c := range s.x.classes {
		near := s.x.classes[c].near
		if near == "" || s.moved {
			continue
		}
		for side := range s.sides {
			for _, v := range vicinities(near, s.sides[side], s.passages[side], s.whole) {
				s.searchVicinity(uint8(c), v, func(p int32, found []nearby) { f(p, side, found) })
			}
		}
	}
}

// searchVicinity calls f for each pattern of class c that stands in v.
func (s *search) searchVicinity(c uint8, v *vicinity, f func(p int32, found []nearby)) {
	found := map[int32][]nearby{}
	var order []int32
	places := map[uint32][]nearby{} // of each term
	for b := range v.blocks {
		w := &v.blocks[b]
		st := s.x.normalizeRegion(w, c, flow.Span{0, len(w.Tokens)}, s.x.keepFunc(c, w))
		for k, t := range st.terms {
			if t != 0 {
				places[t] = append(places[t], nearby{v, b, flow.Span{st.tokens[k], st.tokens[k] + 1}})
			}
		}
		s.x.lookUp(c, st, func(p int32, st *termStream, k int) {
			tokens := st.tokens[k : k+1]
			if !s.x.patterns[p].anyOrder {
				if tokens = s.x.patterns[p].occurrenceAt(st, k); tokens == nil {
					return
				}
			}
			if found[p] == nil {
				order = append(order, p)
			}
			found[p] = append(found[p], nearby{v, b, flow.Span{tokens[0], tokens[len(tokens)-1] + 1}})
		})
	}
	for _, p := range order {
		if x := &s.x.patterns[p]; !x.anyOrder || !slices.ContainsFunc(x.terms, func(t uint32) bool { return places[t] == nil }) {
			f(p, found[p])
		}
	}
}

// reportNear calls report for each difference that is near a keyword of a class with near, unless run
// reports the keyword there anyway. Of an item that only one version has, the keyword alone is enough.
func (s *search) reportNear(report func(p int32, side int, pl place)) {
	s.eachNear(func(p int32, side int, found []nearby) {
		if t := s.tallies[p]; s.whole && t != nil && len(t.places[side]) > 0 && s.isReported(p, t, side) {
			return
		}
		for _, i := range found[0].windows {
			w := &s.sides[side][i]
			next := 0 // the first of found behind the difference
			for k, d := range w.shownEdits {
				for next < len(found) && found[next].position() < w.Offset+w.Tokens[d[0]][0] {
					next++
				}
				n := found[min(next, len(found)-1)]
				if next > 0 && (next == len(found) || found[next-1].distance(w, d) < n.distance(w, d)) {
					n = found[next-1]
				}
				if n.reaches(w, d) && !s.isReportedAt(placeKey{p, side, i, k, 0}) {
					report(p, side, place{window: i, shownEdit: k, full: d, core: flow.Span{d[0], d[0] + 1}, near: &n})
				}
			}
		}
	})
}

// isReportedAt reports whether run reports a place at the difference k.
func (s *search) isReportedAt(k placeKey) bool {
	_, ok := s.placeIndexes[k]
	return ok && s.isReported(k.pattern, s.tallies[k.pattern], k.side)
}

// blockBorder stands between the blocks of an item in a snippet.
const blockBorder = " · "

// line returns the blocks of which the snippet is: the item in which the text stands, if it has several blocks,
// or else the block with the keyword. It is nil if the snippet is from the window.
func (h *hit) line() []window {
	if h.lineFound {
		return h.lineBlocks
	}
	h.lineFound = true
	passages := [2][]flow.Passage{oldSide: h.of.OldPassages, newSide: h.of.NewPassages}[h.side]
	if h.of.IsWhole() && !h.of.Coarse {
		h.lineBlocks = wholeItem([2][]flow.Window{oldSide: h.of.Old, newSide: h.of.New}[h.side])
	} else if p := passageAround(passages, h.w); p >= 0 {
		if blocks := slices.Collect(blocksOf(passages[p].Offset, passages[p].Text)); len(blocks) > 1 {
			h.lineBlocks = blocks
		}
	}
	if h.lineBlocks == nil && h.near != nil {
		h.lineBlocks = h.near.blocks
	}
	return h.lineBlocks
}

// wholeItem returns ws, the blocks of an item that only one version has. It returns nil for one block, which is a line
// by itself, and for an item that is too long for a line.
func wholeItem(ws []flow.Window) []window {
	if len(ws) < 2 || len(ws) > text.MaxItem { // each block has a token
		return nil
	}
	blocks := make([]window, len(ws))
	for i := range ws {
		blocks[i].Window = &ws[i]
	}
	if !isShort(blocks) {
		return nil
	}
	return blocks
}

// lineSnippet returns the text, and the keyword if that stands beside it, each in its context of about
// offset characters on each side, as one line of blocks.
func (h *hit) lineSnippet(blocks []window, offset int) snippet {
	h.computeText()
	var line strings.Builder
	var changed, keyword flow.Span // in line
	for i := range blocks {
		w := blocks[i].Window
		if i > 0 {
			line.WriteString(blockBorder)
		}
		lead := len(w.Text) - len(strings.TrimLeftFunc(w.Text, unicode.IsSpace))
		shift := line.Len() - lead // from the block's text to line
		if from := h.w.Offset + h.from - w.Offset; from >= 0 && from < len(w.Text) {
			changed = flow.Span{from + shift, from + h.to - h.from + shift}
		}
		if h.near != nil {
			n := h.near.blocks[h.near.block].Window
			if from := n.Offset - w.Offset + n.Tokens[h.near.tokens[0]][0]; from >= 0 && from < len(w.Text) {
				from, to := text.WholeWords(w.Text, from, n.Offset-w.Offset+n.Tokens[h.near.tokens[1]-1][1])
				keyword = flow.Span{from + shift, to + shift}
			}
		}
		line.WriteString(strings.TrimSpace(w.Text))
	}
	if h.near == nil {
		keyword = changed
	}
	all := line.String()
	parts := []flow.Span{widen(all, changed, offset), widen(all, keyword, offset)}
	if parts[1][0] < parts[0][0] {
		parts[0], parts[1] = parts[1], parts[0]
	}
	if parts[1][0] <= parts[0][1]+len(ellipsis)+2 { // what would be left out is no longer than its mark
		parts = []flow.Span{union(parts[0], parts[1])}
	}
	first, last := blocks[0].Window, blocks[len(blocks)-1].Window
	var b strings.Builder
	at := 0
	if parts[0][0] > 0 || first.CutLeft {
		b.WriteString(ellipsis + " ")
	}
	for i, p := range parts {
		if i > 0 {
			b.WriteString(" " + ellipsis + " ")
		}
		const border = " ·" // none stands beside an ellipsis
		part := strings.TrimLeft(all[p[0]:p[1]], border)
		if p[0] <= changed[0] && changed[0] < p[1] {
			at = b.Len() + changed[0] - (p[1] - len(part))
		}
		b.WriteString(strings.TrimRight(part, border))
	}
	if parts[len(parts)-1][1] < len(all) || last.CutRight {
		b.WriteString(" " + ellipsis)
	}
	return snippet{b.String(), at}
}

// widen returns s, extended by offset characters of line on each side and to the blanks there. It reaches
// to the ends of line where these are near.
func widen(line string, s flow.Span, offset int) flow.Span {
	for n := offset; n > 0 && s[0] > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(line[:s[0]])
		s[0] -= size
	}
	for n := offset; n > 0 && s[1] < len(line); n-- {
		_, size := utf8.DecodeRuneInString(line[s[1]:])
		s[1] += size
	}
	const longWord = 60
	if i := strings.LastIndexByte(line[:s[0]], ' '); s[0]-i <= longWord {
		s[0] = i + 1
	}
	if i := strings.IndexByte(line[s[1]:], ' '); i >= 0 && i <= longWord {
		s[1] += i
	} else if len(line)-s[1] <= longWord {
		s[1] = len(line)
	}
	if s[0] <= len(ellipsis)+1 {
		s[0] = 0
	}
	if len(line)-s[1] <= len(ellipsis)+1 {
		s[1] = len(line)
	}
	return s
}
