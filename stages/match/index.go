package match

import (
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// index holds the keywords of the subscriptions of one document, for texts in one language. It
// needs about 270 bytes for a subscription with a keyword that no other one has, and less where
// keywords are shared. It is not safe for concurrent use.
type index struct {
	language string
	langs    *text.Languages
	// parts are the keywords by language: that of the document (""), or the one that the
	// subscription names.
	parts []part
	// names are the names of the entries by number, and numbers the reverse. A removed entry has
	// the name "", and its keywords stay until the index is built again.
	names   []string
	numbers map[string]int32
}

type part struct {
	language string
	*patternIndex
}

func newIndex(language string, langs *text.Languages) *index {
	return &index{language: language, langs: langs, numbers: map[string]int32{}}
}

// add adds the subscription s under name, in place of the one that has the name.
func (x *index) add(name string, s pipeline.Subscription) {
	x.remove(name)
	e := int32(len(x.names))
	x.names = append(x.names, name)
	x.numbers[name] = e
	x.part(s.Language).add(e, s)
}

// part returns the keywords of the subscriptions that name language, or with "" none.
func (x *index) part(language string) *patternIndex {
	for _, p := range x.parts {
		if p.language == language {
			return p.patternIndex
		}
	}
	in := language
	if in == "" {
		in = x.language
	}
	p := newPatternIndex(x.langs.Normalizer(in))
	x.parts = append(x.parts, part{language, p})
	return p
}

// remove removes the subscription with that name, if there is one.
func (x *index) remove(name string) {
	if e, ok := x.numbers[name]; ok {
		x.names[e] = ""
		delete(x.numbers, name)
	}
}

// len returns how many subscriptions there are.
func (x *index) len() int { return len(x.numbers) }

// wasteful reports whether most entries are removed ones.
func (x *index) wasteful() bool { return len(x.names) > 2*len(x.numbers)+1000 }

// find returns what c matches, by the number of the subscription.
func (x *index) find(c *flow.Change) map[int32][]finding {
	found := map[int32][]finding{}
	for _, part := range x.parts {
		for p, hits := range part.match(c) {
			for _, h := range part.patterns[p].subs {
				if x.names[h.entry] != "" {
					found[h.entry] = append(found[h.entry], finding{h.keyword, *hits})
				}
			}
		}
	}
	return found
}
