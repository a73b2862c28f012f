package match

import (
	"cmp"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// index holds the keywords of the subscriptions of one document, for texts in one language. It
// needs about 280 bytes for a subscription with a keyword that no other one has, and less where
// keywords are shared. It is not safe for concurrent use.
type index struct {
	language string
	langs    *text.Languages
	// parts are the keywords by language: that of the document (""), or the one that the
	// subscription names.
	parts []part
	// withoutKeywords are the numbers of the entries without keywords, which match every change.
	withoutKeywords []int32
	// names are the names of the entries by number. The first ones, as they are read from the
	// store, are ascending; numbers has the others.
	names        []string
	sortedCount  int
	numberByName map[string]int32
	// removed are the numbers of removed entries. Their keywords stay until the index is built
	// again.
	removed map[int32]bool
}

type part struct {
	language string
	*patternIndex
}

func newIndex(language string, langs *text.Languages) *index {
	return &index{language: language, langs: langs, numberByName: map[string]int32{}, removed: map[int32]bool{}}
}

// add adds the subscription s under name, in place of the one that has the name.
func (x *index) add(name string, s pipeline.Subscription) {
	x.remove(name)
	e := int32(len(x.names))
	if x.sortedCount == len(x.names) && (e == 0 || name > x.names[e-1]) {
		x.sortedCount++
	} else {
		x.numberByName[name] = e
	}
	x.names = append(x.names, name)
	if len(s.Keywords) == 0 {
		x.withoutKeywords = append(x.withoutKeywords, e)
	} else {
		x.partFor(s.Language).add(e, s)
	}
}

// partFor returns the keywords of the subscriptions that name language, or with "" none.
func (x *index) partFor(language string) *patternIndex {
	for _, p := range x.parts {
		if p.language == language {
			return p.patternIndex
		}
	}
	p := newPatternIndex(x.langs.Normalizer(cmp.Or(language, x.language)))
	x.parts = append(x.parts, part{language, p})
	return p
}

// remove removes the subscription with that name, if there is one.
func (x *index) remove(name string) {
	if e, ok := x.numberByName[name]; ok {
		x.removed[e] = true
		delete(x.numberByName, name)
	} else if i, ok := slices.BinarySearch(x.names[:x.sortedCount], name); ok {
		x.removed[int32(i)] = true
	}
}

// len returns how many subscriptions there are.
func (x *index) len() int { return len(x.names) - len(x.removed) }

// needsRebuild reports whether most entries are removed ones.
func (x *index) needsRebuild() bool { return len(x.removed) > x.len()+1000 }

// findMatches returns what c matches, by the number of the subscription. A subscription without keywords
// has no findings.
func (x *index) findMatches(c *flow.Change) map[int32][]finding {
	found := map[int32][]finding{}
	for _, e := range x.withoutKeywords {
		if !x.removed[e] {
			found[e] = nil
		}
	}
	for _, part := range x.parts {
		for p, hits := range part.findHits(c) {
			for _, h := range part.patterns[p].subs {
				if !x.removed[h.entry] {
					found[h.entry] = append(found[h.entry], finding{h.keyword, *hits})
				}
			}
		}
	}
	return found
}
