package match

import (
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// Count returns how often content, a text in the language, holds keyword as the subscription s
// compares it; where its words may stand in any order, in how many passages they are.
func Count(content, language, keyword string, s pipeline.Subscription, languages *text.Languages) int {
	s = s.WithDefaults()
	s.Keywords, s.Events = []string{keyword}, nil
	x := NewMatcher([]Entry{{Subscription: s}}, languages).index(0, language)
	n := 0
	for _, g := range whole(content, language).Groups {
		search := newSearch(x, &g)
		passages := 0
		search.run(func(int32, int, place) { passages++ }, func(_ int32, _, more int) { passages += more })
		for p, t := range search.tallies {
			if x.patterns[p].any {
				n += passages
			} else {
				n += t.counts[newer]
			}
		}
	}
	return n
}
