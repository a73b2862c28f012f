package diff

import (
	"strings"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// How far a window reaches beyond its outermost edits.
const (
	contextTokens = 64
	contextRunes  = 1000
)

// windowBounds is a window in the making: tokens [first, last) and bytes [start, end) of the text.
type windowBounds struct {
	first, last int
	start, end  int
	edits       []flow.Span // as tokens of the text
}

// windows returns the stretches of block b of d around its edits, which are indexes
// of tokens within the block, in order.
func windows(d *text.Doc, b int, edits []flow.Span) []flow.Window {
	block := d.Blocks[b]
	var views []windowBounds
	for _, e := range edits {
		e = flow.Span{block.First + e[0], block.First + e[1]}
		v := windowBounds{edits: []flow.Span{e}}
		v.first, v.start = windowStart(d, block, e)
		v.last, v.end = windowEnd(d, block, e)
		if k := len(views) - 1; k >= 0 && v.first <= views[k].last {
			views[k].last, views[k].end = v.last, v.end
			views[k].edits = append(views[k].edits, e)
			continue
		}
		views = append(views, v)
	}
	out := make([]flow.Window, len(views))
	for i, v := range views {
		out[i] = v.toWindow(d, b)
	}
	return out
}

// windowStart returns where the window around edit e begins, in tokens and in bytes. The tokens next
// to an empty edit are in it however long they are.
func windowStart(d *text.Doc, block text.Block, e flow.Span) (token, offset int) {
	token, offset = e[0], d.Tokens[e[0]].Start
	room := contextRunes
	for token > block.First && e[0]-token < contextTokens {
		start := d.Tokens[token-1].Start
		room -= utf8.RuneCountInString(d.Content[start:offset])
		if room < 0 && (e[0] != e[1] || token != e[0]) {
			return token, offset
		}
		token, offset = token-1, start
	}
	if token == block.First && utf8.RuneCountInString(d.Content[block.Start:offset]) <= room {
		offset = block.Start
	}
	return token, offset
}

// windowEnd returns where the window around edit e ends.
func windowEnd(d *text.Doc, block text.Block, e flow.Span) (token, offset int) {
	token, offset = e[1], d.Tokens[e[1]-1].End
	room := contextRunes
	for token < block.Last && token-e[1] < contextTokens {
		end := d.Tokens[token].End
		room -= utf8.RuneCountInString(d.Content[offset:end])
		if room < 0 && (e[0] != e[1] || token != e[1]) {
			return token, offset
		}
		token, offset = token+1, end
	}
	if token == block.Last && utf8.RuneCountInString(d.Content[offset:block.End]) <= room {
		offset = block.End
	}
	return token, offset
}

// maxTitle is the size of a flow.Group.Title, in bytes.
const maxTitle = 100

func clipped(block string) string { return flow.Clipped(strings.TrimSpace(block), maxTitle) }

// toWindow returns v, which is in block b of d.
func (v windowBounds) toWindow(d *text.Doc, b int) flow.Window {
	block := d.Blocks[b]
	w := flow.Window{
		Offset:  v.start,
		Text:    d.Content[v.start:v.end],
		CutLeft: v.start > block.Start, CutRight: v.end < block.End,
		Tokens: make([]flow.Span, 0, v.last-v.first),
		Edits:  make([]flow.Span, 0, len(v.edits)),
	}
	for _, t := range d.Tokens[v.first:v.last] {
		w.Tokens = append(w.Tokens, flow.Span{t.Start - v.start, t.End - v.start})
	}
	for _, e := range v.edits {
		w.Edits = append(w.Edits, flow.Span{e[0] - v.first, e[1] - v.first})
	}
	return w
}

// passages returns the passages of which the windows, those of the units, are parts.
func passages(d *text.Doc, units []int, windows []flow.Window) []flow.Passage {
	var out []flow.Passage
	add := func(first, last int) bool { // blocks
		start, end := d.Blocks[first].Start, d.Blocks[last-1].End
		fits := end-start <= flow.MaxPassage
		if fits {
			out = append(out, flow.Passage{Offset: start, Text: d.Content[start:end]})
		}
		return fits
	}
	for _, u := range units {
		unit := d.Units[u]
		for b := unit.FirstBlock; b < unit.LastBlock; b++ {
			n := 0 // the windows in the block
			for n < len(windows) && windows[n].Offset < d.Blocks[b].End {
				n++
			}
			if n == 0 {
				continue
			}
			if unit.LastBlock-unit.FirstBlock > 1 && add(unit.FirstBlock, unit.LastBlock) {
				for n < len(windows) && windows[n].Offset < d.Blocks[unit.LastBlock-1].End {
					n++
				}
				windows = windows[n:]
				break
			}
			if windows[0].CutLeft || windows[0].CutRight {
				add(b, b+1)
			}
			windows = windows[n:]
		}
	}
	return out
}

// wholeBlocks returns the blocks of q as windows of one edit each.
func wholeBlocks(d *text.Doc, q sequence) []flow.Window {
	out := make([]flow.Window, len(q.blocks))
	for i, s := range q.blocks {
		b := d.Blocks[s.block]
		v := windowBounds{b.First, b.Last, b.Start, b.End, []flow.Span{{b.First, b.Last}}}
		out[i] = v.toWindow(d, s.block)
	}
	return out
}

// keptPartners returns, for each symbol of both sides, its position on the other side, or -1 if it
// is not kept.
func keptPartners(kept []run, n, m int) (a, b []int) {
	a, b = make([]int, n), make([]int, m)
	for i := range a {
		a[i] = -1
	}
	for j := range b {
		b[j] = -1
	}
	for _, r := range kept {
		for k := range r.n {
			a[r.a+k], b[r.b+k] = r.b+k, r.a+k
		}
	}
	return a, b
}

// blockEdits returns the edits of one block as token indexes within it. partner is the position
// of each token on the other side, or -1. An edit is a run of tokens that are not kept, or
// empty: between two kept tokens that are not adjacent on the other side. There are no empty
// edits at the ends of a block, since no phrase can be joined or split there.
func blockEdits(partner []int) []flow.Span {
	var edits []flow.Span
	for i := 0; i < len(partner); {
		if partner[i] >= 0 {
			i++
			if i < len(partner) && partner[i] >= 0 && partner[i] != partner[i-1]+1 {
				edits = append(edits, flow.Span{i, i})
			}
			continue
		}
		from := i
		for i < len(partner) && partner[i] < 0 {
			i++
		}
		edits = append(edits, flow.Span{from, i})
	}
	return edits
}
