package match

import (
	"strings"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// groupSide is one side of a group in the making.
type groupSide struct {
	blocks []string
	tokens [][]string // by block
	// changed says of each token, gaps of each place in front of one, what the other
	// side does not have or has.
	changed, gaps [][]bool
	item          bool // the blocks are one item
}

func newGroupSide(blocks []string) *groupSide {
	s := &groupSide{blocks: blocks}
	for _, b := range blocks {
		var ws []string
		for _, t := range text.Tokens(b) {
			ws = append(ws, b[t.Start:t.End])
		}
		s.tokens = append(s.tokens, ws)
		s.changed = append(s.changed, make([]bool, len(ws)))
		s.gaps = append(s.gaps, make([]bool, len(ws)+1))
	}
	return s
}

// flatTokens returns all tokens with "\n" between blocks.
func (s *groupSide) flatTokens() []string {
	var out []string
	for i, ws := range s.tokens {
		if i > 0 {
			out = append(out, "\n")
		}
		out = append(out, ws...)
	}
	return out
}

// markChanged notes that token i of flat is not on the other side, or that before it there are
// others there.
func (s *groupSide) markChanged(i int, gap bool) {
	for b, ws := range s.tokens {
		if i < len(ws) || gap && i == len(ws) {
			if gap {
				s.gaps[b][i] = true
			} else {
				s.changed[b][i] = true
			}
			return
		}
		if i == len(ws) {
			return // the border itself
		}
		i -= len(ws) + 1
	}
}

// align marks what differs between two sides, by a longest common subsequence.
func align(a, b *groupSide) {
	x, y := a.flatTokens(), b.flatTokens()
	lcs := make([][]int, len(x)+1)
	for i := range lcs {
		lcs[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			lcs[i][j] = max(lcs[i+1][j], lcs[i][j+1])
			if x[i] == y[j] {
				lcs[i][j] = max(lcs[i][j], lcs[i+1][j+1]+1)
			}
		}
	}
	for i, j := 0, 0; i < len(x) || j < len(y); {
		p, q := i, j
		for i < len(x) || j < len(y) {
			if i < len(x) && j < len(y) && x[i] == y[j] && lcs[i][j] == lcs[i+1][j+1]+1 {
				break
			}
			if j == len(y) || i < len(x) && lcs[i+1][j] >= lcs[i][j+1] {
				a.markChanged(i, false)
				i++
			} else {
				b.markChanged(j, false)
				j++
			}
		}
		if j > q {
			a.markChanged(i, true)
		}
		if i > p {
			b.markChanged(j, true)
		}
		i, j = i+1, j+1
	}
}

// edits returns the edits of block b.
func (s *groupSide) edits(b int) []flow.Span {
	var out []flow.Span
	n := len(s.tokens[b])
	for i := 0; i < n; i++ {
		if s.changed[b][i] {
			from := i
			for i < n && s.changed[b][i] {
				i++
			}
			out = append(out, flow.Span{from, i})
		} else if s.gaps[b][i] && i > 0 && !s.changed[b][i-1] {
			out = append(out, flow.Span{i, i})
		}
		if i < n && s.gaps[b][i] && i > 0 && s.changed[b][i-1] {
			continue // a gap beside an edit adds nothing
		}
	}
	return out
}

// windows returns the windows of all blocks, with context tokens around the edits.
func (s *groupSide) windows(offset, context int) ([]flow.Window, int) {
	var out []flow.Window
	for b, block := range s.blocks {
		edits := s.edits(b)
		tokens := text.Tokens(block)
		for len(edits) > 0 {
			k := 1
			for k < len(edits) && edits[k][0]-edits[k-1][1] <= 2*context {
				k++
			}
			out = append(out, newTestWindow(block, tokens, edits[:k], offset, context))
			edits = edits[k:]
		}
		offset += len(block) + 1
	}
	return out, offset
}

// passages returns the whole of the item, or of each block.
func (s *groupSide) passages(offset int, item bool) (out []flow.Passage) {
	if item {
		return []flow.Passage{{Offset: offset, Text: strings.Join(s.blocks, "\n")}}
	}
	for _, b := range s.blocks {
		out = append(out, flow.Passage{Offset: offset, Text: b})
		offset += len(b) + 1
	}
	return out
}

func newTestWindow(block string, tokens []text.Token, edits []flow.Span, offset, context int) flow.Window {
	first, last := max(edits[0][0]-context, 0), min(edits[len(edits)-1][1]+context, len(tokens))
	start, end := 0, len(block)
	if first > 0 {
		start = tokens[first].Start
	}
	if last < len(tokens) {
		end = tokens[last-1].End
	}
	w := flow.Window{Offset: offset + start, Text: block[start:end], CutLeft: first > 0, CutRight: last < len(tokens)}
	for _, t := range tokens[first:last] {
		w.Tokens = append(w.Tokens, flow.Span{t.Start - start, t.End - start})
	}
	for _, e := range edits {
		w.Edits = append(w.Edits, flow.Span{e[0] - first, e[1] - first})
	}
	return w
}

// groupTexts is a group: what stood and what stands, blocks separated by "|".
type groupTexts struct {
	old, new string
	moved    bool
	// item says that the blocks of each side are one item, such as a table row.
	item bool
}

func splitBlocks(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "|")
}

// changeOf makes a change of groups, with their sides for whoever wants to count.
func changeOf(context int, groups ...groupTexts) (*flow.Change, [][2]*groupSide) {
	c := &flow.Change{ID: "change", URL: "https://example.com/", Page: "https://example.com/", Document: "doc",
		Incarnation: "inc", Version: 2, Previous: 1, Language: "en"}
	var sides [][2]*groupSide
	var at [2]int
	for _, g := range groups {
		s := [2]*groupSide{newGroupSide(splitBlocks(g.old)), newGroupSide(splitBlocks(g.new))}
		var out flow.Group
		if old, new := at[0], at[1]; !g.moved && g.old != "" && g.new != "" {
			out.OldPassages, out.NewPassages = s[0].passages(old, g.item), s[1].passages(new, g.item)
		}
		s[0].item, s[1].item = g.item, g.item
		if g.moved {
			out.Moved = true
			for i := range s {
				for b := range s[i].changed {
					for k := range s[i].changed[b] {
						s[i].changed[b][k] = true
					}
				}
			}
		} else {
			align(s[0], s[1])
		}
		switch {
		case !g.item || g.moved:
		case g.old == "":
			out.Item, out.Title = flow.ItemNew, s[1].blocks[0]
		case g.new == "":
			out.Item, out.Title = flow.ItemGone, s[0].blocks[0]
		default:
			out.Item, out.Title = flow.ItemChanged, s[1].blocks[0]
		}
		out.Old, at[0] = s[0].windows(at[0], context)
		out.New, at[1] = s[1].windows(at[1], context)
		c.Groups = append(c.Groups, out)
		sides = append(sides, s)
	}
	return c, sides
}
