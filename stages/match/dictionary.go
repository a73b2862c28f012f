package match

import (
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// class says how the tokens of a text are normalized for a keyword.
type class struct {
	form           text.Form
	skipsStopwords bool // stop words are passed over
	skipsSigns     bool // signs are passed over, since the keyword has none: "price 10" is in "price: $10"
	// near is pipeline.Subscription.Near: what of the text is searched besides the surroundings of edits.
	near string
}

// indexKey is the index key of a pattern: a term, or a pair of adjacent terms.
type indexKey struct {
	class uint8
	a, b  uint32 // b is 0 for a single term
}

// pattern is one normalized keyword. Several subscriptions may share it.
type pattern struct {
	// terms are the terms of a phrase in order. With any, they are the terms that a difference
	// must contain: at least two, distinct and ascending.
	terms      []uint32
	subs       []keywordRef
	class      uint8
	anyOrder   bool
	hasPairKey bool // the key is the term at index at and the next one
	keyIndex   uint16
	next       int32 // the next pattern with the same key, or none
}

// noPattern is the end of a list of patterns.
const noPattern = -1

// keywordRef is a subscription with the pattern as one of its keywords.
type keywordRef struct{ entry, keyword int32 }

// posting is the list of the patterns with one key.
type posting struct{ first, count int32 }

// patternIndex is an inverted index of keywords in one language.
type patternIndex struct {
	norm    *text.Normalizer
	classes []class
	// dicts number the terms of each class, from 1. Classes of one form share a dictionary.
	dicts         []map[string]uint32
	patterns      []pattern
	postings      map[indexKey]posting
	longestPhrase int  // tokens of the longest phrase
	wantsMoved    bool // a subscription wants moved blocks
}

func newPatternIndex(norm *text.Normalizer) *patternIndex {
	return &patternIndex{norm: norm, postings: map[indexKey]posting{}}
}

// add indexes the keywords of s as those of entry e, which must be greater than all before.
func (x *patternIndex) add(e int32, s pipeline.Subscription) {
	s = s.WithDefaults()
	x.wantsMoved = x.wantsMoved || s.Moved
	for k, word := range s.Keywords {
		p, ok := x.parseKeyword(s, word)
		if !ok {
			continue
		}
		n := x.findEqual(&p)
		if n == noPattern {
			n = int32(len(x.patterns))
			x.addPosting(n, &p)
			x.patterns = append(x.patterns, p)
		}
		if p := &x.patterns[n]; !p.hasKeyword(s.Keywords, e, word) {
			p.subs = append(p.subs, keywordRef{e, int32(k)})
		}
	}
}

// hasKeyword reports whether p already has word, one of the keywords of entry e, the last one
// indexed.
func (p *pattern) hasKeyword(keywords []string, e int32, word string) bool {
	for i := len(p.subs) - 1; i >= 0 && p.subs[i].entry == e; i-- {
		if keywords[p.subs[i].keyword] == word {
			return true
		}
	}
	return false
}

// parseKeyword returns the pattern of the keyword word of s, without its key. It returns false if word
// has no token.
func (x *patternIndex) parseKeyword(s pipeline.Subscription, word string) (pattern, bool) {
	var all, significant []string
	signs := false
	for _, t := range text.Tokens(word) {
		w := word[t.Start:t.End]
		all = append(all, w)
		signs = signs || text.IsSign(w)
		if s.FilterStopwords && !x.norm.IsStop(w) {
			significant = append(significant, w)
		}
	}
	c := class{form: text.FormOf(s), skipsSigns: !signs, near: s.Near}
	if len(significant) > 0 { // a keyword of stop words only is matched against all words
		all, c.skipsStopwords = significant, x.norm.HasStopwords()
	}
	if len(all) == 0 {
		return pattern{}, false
	}
	p := pattern{class: x.classNumber(c), anyOrder: s.Match == pipeline.MatchTerms}
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
	if p.anyOrder {
		p.terms = sortedUnique(p.terms)
		p.anyOrder = len(p.terms) > 1 // a single word is a phrase too
	}
	if !p.anyOrder {
		x.longestPhrase = max(x.longestPhrase, len(p.terms))
	}
	return p, true
}

// classNumber returns the number of c, adding it if it is new. There are at most 72 classes: six
// forms, with and without stop words, with and without signs, for each value of near.
func (x *patternIndex) classNumber(c class) uint8 {
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

// addPosting chooses the key of p, the one that the fewest other patterns have, and adds p as
// pattern n to its list.
func (x *patternIndex) addPosting(n int32, p *pattern) {
	var best indexKey
	least := int32(-1)
	p.eachKey(func(at int, k indexKey) {
		if uses := x.postings[k].count; least < 0 || uses < least {
			least, best, p.keyIndex = uses, k, uint16(at)
		}
	})
	p.hasPairKey, p.next = best.b != 0, noPattern
	list, ok := x.postings[best]
	if ok {
		p.next = list.first
	}
	x.postings[best] = posting{n, list.count + 1}
}

// eachWithKey calls f with each pattern whose key is k.
func (x *patternIndex) eachWithKey(k indexKey, f func(p int32)) {
	list, ok := x.postings[k]
	if !ok {
		return
	}
	for p := list.first; p != noPattern; p = x.patterns[p].next {
		f(p)
	}
}

// findEqual returns the pattern that is equal to p, or none. It is in the list of one of the keys.
func (x *patternIndex) findEqual(p *pattern) int32 {
	found := int32(noPattern)
	p.eachKey(func(_ int, k indexKey) {
		if found == noPattern {
			x.eachWithKey(k, func(n int32) {
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
	return p.class == q.class && p.anyOrder == q.anyOrder && slices.Equal(p.terms, q.terms)
}

// eachKey calls f with every possible key of p, and the index of its term.
func (p *pattern) eachKey(f func(at int, k indexKey)) {
	if p.anyOrder || len(p.terms) == 1 {
		for i, t := range p.terms {
			f(i, indexKey{class: p.class, a: t})
		}
		return
	}
	for i := range p.terms[1:] {
		f(i, indexKey{p.class, p.terms[i], p.terms[i+1]})
	}
}

// sortedUnique returns terms in ascending order, each once.
func sortedUnique(terms []uint32) []uint32 {
	slices.Sort(terms)
	return slices.Compact(terms)
}
