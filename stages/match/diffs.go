package match

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// maxDiffs is how many diffs a notification has at most, unless it has more keywords than that.
const maxDiffs = 50

// envelopeSize is the size in bytes of a notification's JSON without its diffs, URL, title and
// client.
const envelopeSize = 2 << 10

// keywordHit is a hit of one keyword. isFirst says that it is the first hit of its keyword and
// event.
type keywordHit struct {
	keyword int32
	*hit
	isFirst bool
}

// keywordEvent is a keyword together with an event.
type keywordEvent struct {
	keyword int32
	side    int
}

// keywordDiffs returns the diffs of a notification for s: only events that s wants, in the order of
// the text, without duplicates, and no more than a notification may contain. It also returns
// how many diffs it left out. title is that of the page.
func keywordDiffs(s pipeline.Subscription, title string, found []finding) (diffs []pipeline.Diff, omitted int) {
	reports, more := wantedHits(s, found)
	kinds := 0
	for _, r := range reports {
		if r.isFirst {
			kinds++
		}
	}
	room := maxDiffBytes(s, title)
	kept := make(map[int]pipeline.Diff, min(len(reports), max(maxDiffs, kinds)))
	keep := func(i int) bool {
		d := reports[i].diff(s)
		n := diffSize(d)
		if n > room && len(kept) > 0 {
			return false
		}
		room -= n
		kept[i] = d
		return true
	}
	// The first diff of each keyword and event has precedence.
	others := max(maxDiffs-kinds, 0)
	full := false
	for i := 0; i < len(reports) && !full; i++ {
		full = reports[i].isFirst && !keep(i)
	}
	for i := 0; i < len(reports) && !full && others > 0; i++ {
		if !reports[i].isFirst {
			full = !keep(i)
			others--
		}
	}
	for i := range reports {
		if d, ok := kept[i]; ok {
			diffs = append(diffs, d)
		}
	}
	return diffs, len(reports) - len(diffs) + more
}

// maxDiffBytes is how many bytes the diffs of a notification may take.
func maxDiffBytes(s pipeline.Subscription, title string) int {
	return flow.MaxNotification - envelopeSize - jsonSize(s.URL) - jsonSize(title) - jsonSize(s.Client)
}

// diffSize is how many bytes d takes at most in JSON.
func diffSize(d pipeline.Diff) int {
	return jsonSize(d.Keyword) + jsonSize(d.Text) + jsonSize(d.Counterpart) + jsonSize(d.Snippet) + jsonSize(d.Title) + len(`{"event":"removed","keyword":"","text":"","counterpart":"","snippet":"","snippet_at":10000,"item":"changed","title":"","offset":1000000,"edit":1000},`)
}

// wantedHits returns the hits of events that s wants, in the order of the text and without those
// that would look the same, and how many more hits the search only counted.
func wantedHits(s pipeline.Subscription, found []finding) (reports []keywordHit, more int) {
	for _, f := range found {
		for _, h := range f.list {
			if s.Wants(eventOfSide[h.side]) && (s.Moved || !h.moved) && (!s.NewItems || h.of.Item == flow.ItemNew) {
				reports = append(reports, keywordHit{keyword: f.keyword, hit: h})
			}
		}
		for side, n := range f.onlyCounted {
			if s.Wants(eventOfSide[side]) {
				if s.NewItems {
					more += n.inNewItems
					continue
				}
				more += n.edited
				if s.Moved {
					more += n.moved
				}
			}
		}
	}
	slices.SortFunc(reports, func(a, b keywordHit) int {
		return cmp.Or(compareHits(a.hit, b.hit), cmp.Compare(a.keyword, b.keyword))
	})
	type look struct {
		keyword string
		side    int
		sum     uint64
	}
	seen := make(map[look]bool, len(reports))
	begun := make(map[keywordEvent]bool)
	distinct := reports[:0]
	for _, r := range reports {
		l := look{s.Keywords[r.keyword], r.side, r.contentHash(*s.SnippetOffset)}
		if seen[l] {
			continue
		}
		seen[l] = true
		k := keywordEvent{r.keyword, r.side}
		r.isFirst = !begun[k]
		begun[k] = true
		distinct = append(distinct, r)
	}
	return distinct, more
}

func (r keywordHit) diff(s pipeline.Subscription) pipeline.Diff {
	d := r.hit.diff(*s.SnippetOffset)
	d.Keyword, d.Counterpart = s.Keywords[r.keyword], r.counterpart()
	return d
}

// jsonSize is how many bytes s takes at most in JSON, without its quotes.
func jsonSize(s string) int {
	n := len(s)
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError {
			n += len(`\u0000`) - 1
		}
	}
	return n
}

// maxTextBytes is how long a text may be, in bytes, before it is cut around the keyword.
const maxTextBytes = 2048

// ellipsis marks what is left out.
const ellipsis = "..."

// hit is one place where a pattern was found, with its text and snippets.
type hit struct {
	group, side int
	of          *flow.Group
	moved       bool
	place
	w *flow.Window

	// text, its span from, to in w.Text, and its counterpart other are computed when first needed. So are
	// snippets and hashes, which are keyed by the offset of the snippet.
	text     string
	from, to int
	other    *string
	snippets map[int]snippet
	hashes   map[int]uint64
	// lineBlocks are what line returned.
	lineBlocks []window
	lineFound  bool
}

// computeText sets the text: the difference, extended to the first and the last token of the
// keyword. If it is too long, it is cut around the keyword, between tokens. If the words of the
// keyword are themselves too far apart, it shows these alone. Words are shown as people write them.
func (h *hit) computeText() {
	if h.text != "" {
		return
	}
	full := h.full
	size := func(s flow.Span) int { return h.w.Tokens[s[1]-1][1] - h.w.Tokens[s[0]][0] }
	if size(full) > maxTextBytes {
		cut := h.core
		for grown := true; grown; {
			grown = false
			if left := (flow.Span{cut[0] - 1, cut[1]}); left[0] >= full[0] && size(left) <= maxTextBytes {
				cut, grown = left, true
			}
			if right := (flow.Span{cut[0], cut[1] + 1}); right[1] <= full[1] && size(right) <= maxTextBytes {
				cut, grown = right, true
			}
		}
		full = cut
	}
	h.from, h.to = h.w.Tokens[full[0]][0], h.w.Tokens[full[1]-1][1]
	h.from, h.to = text.WholeWords(h.w.Text, h.from, h.to)
	h.text = h.w.Text[h.from:h.to]
	switch {
	case len(h.text) <= maxTextBytes:
	case len(h.tokens) > 1:
		h.text = h.joinWords()
	default: // one very long word, or two with a very long rule between them
		h.to = h.from + maxTextBytes
		for !utf8.RuneStart(h.w.Text[h.to]) {
			h.to--
		}
		h.text = h.w.Text[h.from:h.to]
	}
}

// joinWords returns the keyword's words without the text between them.
func (h *hit) joinWords() string {
	slices.Sort(h.tokens)
	var words []string
	for _, i := range h.tokens {
		words = append(words, h.w.Text[h.w.Tokens[i][0]:h.w.Tokens[i][1]])
	}
	return strings.Join(words, " "+ellipsis+" ")
}

// diff returns h as a diff without its keyword, with a snippet of offset characters of context on each side.
func (h *hit) diff(offset int) pipeline.Diff {
	s := h.snippet(offset)
	return pipeline.Diff{
		Event: eventOfSide[h.side], Text: h.text, Snippet: s.text, SnippetAt: s.at, Item: h.of.Item, Title: h.of.Title, Offset: h.w.Offset + h.from,
	}
}

// snippet is a text in its context. The text begins at at.
type snippet struct {
	text string
	at   int
}

// snippet returns the text with offset characters of context on each side, extended to whole
// words.
func (h *hit) snippet(offset int) snippet {
	h.computeText()
	if s, ok := h.snippets[offset]; ok {
		return s
	}
	if h.snippets == nil {
		h.snippets = map[int]snippet{}
	}
	var s snippet
	if blocks := h.line(); blocks != nil {
		s = h.lineSnippet(blocks, offset)
	} else {
		before := h.contextBefore(offset)
		s = snippet{before + h.text + h.contextAfter(offset), len(before)}
	}
	h.snippets[offset] = s
	return s
}

var hashSeed = maphash.MakeSeed()

// contentHash is a hash of the text, the snippet and the item. It does not store them, since most hits
// of a change with very many hits are only counted.
func (h *hit) contentHash(offset int) uint64 {
	if s, ok := h.hashes[offset]; ok {
		return s
	}
	h.computeText()
	var sum maphash.Hash
	sum.SetSeed(hashSeed)
	parts := []string{h.of.Item, h.of.Title, "\x00", h.text, "\x00"}
	if h.line() != nil {
		parts = append(parts, h.snippet(offset).text)
	} else {
		parts = append(parts, h.contextBefore(offset), h.text, h.contextAfter(offset))
	}
	for _, part := range parts {
		_, _ = sum.WriteString(part) // it never fails
	}
	if h.hashes == nil {
		h.hashes = map[int]uint64{}
	}
	h.hashes[offset] = sum.Sum64()
	return h.hashes[offset]
}

// contextBefore returns the context in front of the text: about offset characters, see snippet.
func (h *hit) contextBefore(offset int) string {
	at := h.from
	for ; offset > 0 && at > 0; offset-- {
		_, n := utf8.DecodeLastRuneInString(h.w.Text[:at])
		at -= n
	}
	if t, ok := h.tokenAround(at); ok {
		at = t[0]
	}
	if at < h.from {
		at, _ = text.WholeWords(h.w.Text, at, h.from)
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

// contextAfter returns the context behind the text: about offset characters, see snippet.
func (h *hit) contextAfter(offset int) string {
	at, end := h.to, len(h.w.Text)
	for ; offset > 0 && at < end; offset-- {
		_, n := utf8.DecodeRuneInString(h.w.Text[at:])
		at += n
	}
	if t, ok := h.tokenAround(at); ok {
		at = t[1]
	}
	if at > h.to {
		_, at = text.WholeWords(h.w.Text, h.to, at)
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

// minCuttableWord is the length in bytes from which a word may be cut in a snippet.
const minCuttableWord = 100

// tokenAround returns the token that contains the position at, if at is not at its border and the
// token may not be cut.
func (h *hit) tokenAround(at int) (t flow.Span, ok bool) {
	i, _ := slices.BinarySearchFunc(h.w.Tokens, at, func(t flow.Span, at int) int { return t[1] - at })
	if i == len(h.w.Tokens) {
		return t, false
	}
	t = h.w.Tokens[i]
	return t, t[0] < at && at < t[1] && t[1]-t[0] < minCuttableWord
}
