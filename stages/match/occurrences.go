package match

import (
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// Occurrence is a place where a text contains a keyword.
type Occurrence struct {
	// Position is the number of the first token in the text, from 1.
	Position int
	// Start and End are the bytes [Start, End) of the text.
	Start, End int
	// Text is the exact text of the occurrence. Snippet is it in its context.
	Text, Snippet string
}

// Occurrences calls f for each occurrence of keyword in content, a text in the given language, as the
// subscription s compares words, in the order of the text, until f returns false. If the words of
// the keyword may be in any order, each of its words in the text is an occurrence.
func Occurrences(content, language, keyword string, s pipeline.Subscription, languages *text.Languages, f func(Occurrence) bool) {
	s = s.WithDefaults()
	s.Keywords, s.Events, s.Near = []string{keyword}, nil, ""
	x := NewMatcher([]Entry{{Subscription: s}}, languages).index(language).parts[0].patternIndex
	if len(x.patterns) == 0 {
		return
	}
	p := &x.patterns[0]
	position := 1
	eachBlock(&changeAddingAll(content, language).Groups[0], func(_ int, w window) bool {
		st := x.normalizeRegion(&w, p.class, flow.Span{0, len(w.Tokens)}, x.keepFunc(p.class, &w))
		for k, term := range st.terms {
			var tokens []int
			if !p.anyOrder {
				tokens = p.occurrenceAt(st, k+int(p.keyIndex))
			} else if slices.Contains(p.terms, term) {
				tokens = st.tokens[k : k+1]
			}
			if len(tokens) == 0 {
				continue
			}
			found := flow.Span{tokens[0], tokens[len(tokens)-1] + 1}
			h := &hit{of: &flow.Group{}, w: w.Window, place: place{full: found, core: found}}
			snippet := h.snippet(*s.SnippetOffset).text
			if !f(Occurrence{position + found[0], w.Offset + h.from, w.Offset + h.to, h.text, snippet}) {
				return false
			}
		}
		position += len(w.Tokens)
		return true
	})
}
