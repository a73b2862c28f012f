package match

import (
	"hash/maphash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// maxText is how long a text may be, in bytes, before it is cut around the keyword.
const maxText = 2048

// ellipsis stands where something is left out.
const ellipsis = "..."

// hit is one place where a pattern was found, and what is to be said about it.
type hit struct {
	group, side int
	moved       bool
	place
	w *pipeline.Window

	// text and from and to, its place in w.Text, are made when first asked for. So are the
	// snippets and sums, by the offset of the snippet.
	text     string
	from, to int
	snippets map[int]string
	sums     map[int]uint64
}

// render makes the text: the difference, reaching to the first and the last token of the
// keyword. One that is too long is cut at tokens, around the keyword; where the words of
// the keyword are themselves too far apart, they alone are shown.
func (h *hit) render() {
	if h.text != "" {
		return
	}
	full := h.full
	size := func(s pipeline.Span) int { return h.w.Tokens[s[1]-1][1] - h.w.Tokens[s[0]][0] }
	if size(full) > maxText {
		cut := h.core
		for grown := true; grown; {
			grown = false
			if left := (pipeline.Span{cut[0] - 1, cut[1]}); left[0] >= full[0] && size(left) <= maxText {
				cut, grown = left, true
			}
			if right := (pipeline.Span{cut[0], cut[1] + 1}); right[1] <= full[1] && size(right) <= maxText {
				cut, grown = right, true
			}
		}
		full = cut
	}
	h.from, h.to = h.w.Tokens[full[0]][0], h.w.Tokens[full[1]-1][1]
	h.text = h.w.Text[h.from:h.to]
	if len(h.text) > maxText && len(h.tokens) > 1 {
		h.text = h.apart()
	}
}

// apart returns the keyword's words with what is between them left out.
func (h *hit) apart() string {
	slices.Sort(h.tokens)
	var words []string
	for _, i := range h.tokens {
		words = append(words, h.w.Text[h.w.Tokens[i][0]:h.w.Tokens[i][1]])
	}
	return strings.Join(words, " "+ellipsis+" ")
}

// snippet returns the text with offset characters of its block on each side, moved out to
// the borders of words.
func (h *hit) snippet(offset int) string {
	h.render()
	if s, ok := h.snippets[offset]; ok {
		return s
	}
	if h.snippets == nil {
		h.snippets = map[int]string{}
	}
	s := h.before(offset) + h.text + h.behind(offset)
	h.snippets[offset] = s
	return s
}

var seed = maphash.MakeSeed()

// sum is a hash of the text and the snippet. It keeps neither, since most hits of a change with
// very many are only counted.
func (h *hit) sum(offset int) uint64 {
	if s, ok := h.sums[offset]; ok {
		return s
	}
	h.render()
	var sum maphash.Hash
	sum.SetSeed(seed)
	for _, part := range []string{h.text, "\x00", h.before(offset), h.text, h.behind(offset)} {
		_, _ = sum.WriteString(part) // it never fails
	}
	if h.sums == nil {
		h.sums = map[int]uint64{}
	}
	h.sums[offset] = sum.Sum64()
	return h.sums[offset]
}

func (h *hit) before(offset int) string {
	at := h.from
	for ; offset > 0 && at > 0; offset-- {
		_, n := utf8.DecodeLastRuneInString(h.w.Text[:at])
		at -= n
	}
	if t, ok := h.inToken(at); ok {
		at = t[0]
	}
	if at <= len(ellipsis)+1 && !h.w.CutLeft {
		at = 0 // what would be left out is no longer than the mark that says so
	}
	s := h.w.Text[at:h.from]
	if at == 0 && !h.w.CutLeft {
		return strings.TrimLeftFunc(s, unicode.IsSpace)
	}
	return ellipsis + " " + strings.TrimLeftFunc(s, unicode.IsSpace)
}

func (h *hit) behind(offset int) string {
	at, end := h.to, len(h.w.Text)
	for ; offset > 0 && at < end; offset-- {
		_, n := utf8.DecodeRuneInString(h.w.Text[at:])
		at += n
	}
	if t, ok := h.inToken(at); ok {
		at = t[1]
	}
	if end-at <= len(ellipsis)+1 && !h.w.CutRight {
		at = end
	}
	s := strings.TrimRightFunc(h.w.Text[h.to:at], unicode.IsSpace)
	if at == end && !h.w.CutRight {
		return s
	}
	return s + " " + ellipsis
}

// inToken returns the token that at is within, not at its border.
func (h *hit) inToken(at int) (pipeline.Span, bool) {
	i, _ := slices.BinarySearchFunc(h.w.Tokens, at, func(t pipeline.Span, at int) int { return t[1] - at })
	if i < len(h.w.Tokens) && h.w.Tokens[i][0] < at && at < h.w.Tokens[i][1] {
		return h.w.Tokens[i], true
	}
	return pipeline.Span{}, false
}
