package match

import (
	"encoding/binary"
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
	class uint8
	// terms are the terms of a phrase in order. With any, they are the terms that a difference
	// must contain: at least two, distinct and ascending.
	terms []uint32
	any   bool
	// at is the index of the term that is the key; with pair, that term and the next one are.
	at   int
	pair bool
	subs []holder
}

// holder is a subscription with the pattern as one of its keywords.
type holder struct{ entry, keyword int32 }

// patternIndex is an inverted index of the patterns of some subscriptions in one language. It is
// immutable once it is built.
type patternIndex struct {
	norm    *text.Normalizer
	classes []class
	// dicts number the terms of each class, from 1. Classes of one form share a dictionary.
	dicts    []map[string]uint32
	patterns []pattern
	postings map[key][]int32 // indexes of patterns
	longest  int             // tokens of the longest phrase
	moved    bool            // a subscription wants moved blocks
}

// newIndex indexes the entries at the positions in which.
func newIndex(entries []Entry, which []int32, norm *text.Normalizer) *patternIndex {
	x := &patternIndex{norm: norm, postings: map[key][]int32{}}
	known := map[string]int32{}
	for _, e := range which {
		s := entries[e].Subscription.WithDefaults()
		x.moved = x.moved || s.Moved
		for k, word := range s.Keywords {
			p, ok := x.parse(s, word)
			if !ok {
				continue
			}
			id := p.identity()
			n, ok := known[id]
			if !ok {
				n = int32(len(x.patterns))
				known[id] = n
				x.patterns = append(x.patterns, p)
			}
			if p := &x.patterns[n]; !p.holds(entries, e, word) {
				p.subs = append(p.subs, holder{e, int32(k)})
			}
		}
	}
	x.post()
	return x
}

// holds reports whether p already has the keyword word of entry e, the last one indexed.
func (p *pattern) holds(entries []Entry, e int32, word string) bool {
	for i := len(p.subs) - 1; i >= 0 && p.subs[i].entry == e; i-- {
		if entries[e].Subscription.Keywords[p.subs[i].keyword] == word {
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

// post chooses the keys of all patterns, the rarest for each, and fills postings.
func (x *patternIndex) post() {
	uses := map[key]int{}
	for i := range x.patterns {
		x.patterns[i].keys(func(_ int, k key) { uses[k]++ })
	}
	for i := range x.patterns {
		p := &x.patterns[i]
		var best key
		least := -1
		p.keys(func(at int, k key) {
			if least < 0 || uses[k] < least {
				least, best, p.at = uses[k], k, at
			}
		})
		p.pair = best.b != 0
		x.postings[best] = append(x.postings[best], int32(i))
	}
}

// identity returns a string that is equal for equal patterns.
func (p *pattern) identity() string {
	b := []byte{p.class, 0}
	if p.any {
		b[1] = 1
	}
	for _, t := range p.terms {
		b = binary.BigEndian.AppendUint32(b, t)
	}
	return string(b)
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
