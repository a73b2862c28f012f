package match

import (
	"sort"

	"github.com/vokter/vokter/pipeline"
)

// window is a stretch of one block with its edits, as they are searched.
type window struct {
	*pipeline.Window
	// edits are Window.Edits, or the whole stretch of a moved block.
	edits []pipeline.Span
	// shown are the edits as people read them; see pipeline.ShownEdits.
	shown []pipeline.Span
}

func newWindow(w *pipeline.Window, moved bool) window {
	v := window{Window: w, edits: w.Edits}
	if moved {
		v.edits = []pipeline.Span{{0, len(w.Tokens)}}
	}
	v.shown = pipeline.ShownEdits(v.edits)
	return v
}

// token returns token i.
func (w *window) token(i int) string { return w.Text[w.Tokens[i][0]:w.Tokens[i][1]] }

// touching returns the edits, as a range of indexes, that the tokens of s touch: those
// that hold one of them, and the empty ones between them.
func (w *window) touching(s pipeline.Span) (from, to int) {
	from = sort.Search(len(w.edits), func(i int) bool { return w.edits[i][1] > s[0] })
	to = from
	for to < len(w.edits) && w.edits[to][0] < s[1] {
		to++
	}
	return from, to
}

// showing returns which of shown token i is in, or -1.
func (w *window) showing(i int) int {
	k := sort.Search(len(w.shown), func(k int) bool { return w.shown[k][1] > i })
	if k < len(w.shown) && w.shown[k][0] <= i {
		return k
	}
	return -1
}

// changed reports whether token i is in an edit.
func (w *window) changed(i int) bool {
	k := sort.Search(len(w.edits), func(k int) bool { return w.edits[k][1] > i })
	return k < len(w.edits) && w.edits[k][0] <= i
}

// regions returns the stretches of tokens in which every occurrence lies that touches an
// edit: what is shown, and reach tokens around every edit, not counting those that
// keep denies.
func (w *window) regions(reach int, keep func(i int) bool) []pipeline.Span {
	var out []pipeline.Span
	for _, e := range w.edits {
		if k := w.showing(e[0]); k >= 0 {
			e = w.shown[k]
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
		out = append(out, pipeline.Span{left, right})
	}
	return out
}
