package match

import (
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// class says how the tokens of a text are normalized for a keyword.
type class struct {
	form     text.Form
	filtered bool // stop words are passed over
}

// key is the index key of a pattern: a term, or a pair of adjacent terms.
type key struct {
	class uint8
	a, b  uint32 // b is 0 for a single term
}

// pattern is one normalized keyword. Several subscriptions may share it.
type pattern struct {
	// terms are the terms of a phrase in order. With any, they are the terms that a difference
	// must contain: at least two, distinct and ascending.
	terms []uint32
	subs  []holder
	class uint8
	any   bool
	pair  bool // the key is the term at index at and the next one
	at    uint16
	next  int32 // the next pattern with the same key, or none
}

// none is the end of a list of patterns.
const none = -1

// holder is a subscription with the pattern as one of its keywords.
type holder struct{ entry, keyword int32 }

// posting is the list of the patterns with one key.
type posting struct{ first, n int32 }

// patternIndex is an inverted index of keywords in one language.
type patternIndex struct {
	norm    *text.Normalizer
	classes []class
	// dicts number the terms of each class, from 1. Classes of one form share a dictionary.
	dicts    []map[string]uint32
	patterns []pattern
	postings map[key]posting
	longest  int  // tokens of the longest phrase
	moved    bool // a subscription wants moved blocks
}

func newPatternIndex(norm *text.Normalizer) *patternIndex {
	return &patternIndex{norm: norm, postings: map[key]posting{}}
}

// add indexes the keywords of s as those of entry e, which must be greater than all before.
func (x *patternIndex) add(e int32, s pipeline.Subscription) {
	s = s.WithDefaults()
	x.moved = x.moved || s.Moved
	for k, word := range s.Keywords {
		p, ok := x.parse(s, word)
		if !ok {
			continue
		}
		n := x.like(&p)
		if n == none {
			n = int32(len(x.patterns))
			x.post(n, &p)
			x.patterns = append(x.patterns, p)
		}
		if p := &x.patterns[n]; !p.holds(s.Keywords, e, word) {
			p.subs = append(p.subs, holder{e, int32(k)})
		}
	}
}

// holds reports whether p already has word, one of the keywords of entry e, the last one
// indexed.
func (p *pattern) holds(keywords []string, e int32, word string) bool {
	for i := len(p.subs) - 1; i >= 0 && p.subs[i].entry == e; i-- {
		if keywords[p.subs[i].keyword] == word {
			return true
		}
	}
	return false
}

// parse returns the pattern of the keyword word of s, without its key. It returns false if word
// has no token.
func (x *patternIndex) parse(s pipeline.Subscription, word string) (pattern, bool) {
	var all, significant []string
	for _, t := range text.Tokens(word) {
		w := word[t.Start:t.End]
		all = append(all, w)
		if s.FilterStopwords && !x.norm.IsStop(w) {
			significant = append(significant, w)
		}
	}
	c := class{form: text.FormOf(s)}
	if len(significant) > 0 { // a keyword of stop words only is matched against all words
		all, c.filtered = significant, x.norm.HasStopwords()
	}
	if len(all) == 0 {
		return pattern{}, false
	}
	p := pattern{class: x.class(c), any: s.Match == pipeline.MatchTerms}
	dict := x.dicts[p.class]
	for _, w := range all {
		term := x.norm.Term(w, c.form)
		id, ok := dict[term]
		if !ok {
			id = uint32(len(dict) + 1)
			dict[term] = id
		}
		p.terms = append(p.terms, id)
	}
	if p.any {
		p.terms = distinct(p.terms)
		p.any = len(p.terms) > 1 // a single word is a phrase too
	}
	if !p.any {
		x.longest = max(x.longest, len(p.terms))
	}
	return p, true
}

// class returns the number of c, adding it if it is new. There are at most twelve classes: six
// forms, filtered or not.
func (x *patternIndex) class(c class) uint8 {
	var dict map[string]uint32
	for i, have := range x.classes {
		if have == c {
			return uint8(i)
		}
		if have.form == c.form {
			dict = x.dicts[i]
		}
	}
	if dict == nil {
		dict = map[string]uint32{}
	}
	x.classes = append(x.classes, c)
	x.dicts = append(x.dicts, dict)
	return uint8(len(x.classes) - 1)
}

// post chooses the key of p, the one that the fewest other patterns have, and adds p as
// pattern n to its list.
func (x *patternIndex) post(n int32, p *pattern) {
	var best key
	least := int32(-1)
	p.keys(func(at int, k key) {
		if uses := x.postings[k].n; least < 0 || uses < least {
			least, best, p.at = uses, k, uint16(at)
		}
	})
	p.pair, p.next = best.b != 0, none
	list, ok := x.postings[best]
	if ok {
		p.next = list.first
	}
	x.postings[best] = posting{n, list.n + 1}
}

// with calls f with each pattern whose key is k.
func (x *patternIndex) with(k key, f func(p int32)) {
	list, ok := x.postings[k]
	if !ok {
		return
	}
	for p := list.first; p != none; p = x.patterns[p].next {
		f(p)
	}
}

// like returns the pattern that is equal to p, or none. It is in the list of one of the keys.
func (x *patternIndex) like(p *pattern) int32 {
	found := int32(none)
	p.keys(func(_ int, k key) {
		if found == none {
			x.with(k, func(n int32) {
				if x.patterns[n].equal(p) {
					found = n
				}
			})
		}
	})
	return found
}

// equal reports whether p and q match the same texts.
func (p *pattern) equal(q *pattern) bool {
	return p.class == q.class && p.any == q.any && slices.Equal(p.terms, q.terms)
}

// keys calls f with every possible key of p, and the index of its term.
func (p *pattern) keys(f func(at int, k key)) {
	if p.any || len(p.terms) == 1 {
		for i, t := range p.terms {
			f(i, key{class: p.class, a: t})
		}
		return
	}
	for i := range p.terms[1:] {
		f(i, key{p.class, p.terms[i], p.terms[i+1]})
	}
}

// distinct returns terms in ascending order, each once.
func distinct(terms []uint32) []uint32 {
	slices.Sort(terms)
	return slices.Compact(terms)
}
