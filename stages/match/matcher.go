package match

import (
	"cmp"
	"slices"
	"sync"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// Entry is a subscription with the name under which its matches are returned.
type Entry struct {
	ID           string
	Subscription pipeline.Subscription
}

// Match is all that a change says to one subscription.
type Match struct {
	ID string
	// Diffs are in the order of the text, at least one.
	Diffs []pipeline.Diff
	// Omitted is how many more there were: a notification has at most 50 of them, or one for each
	// keyword and event if those are more, and at most pipeline.MaxNotification bytes.
	Omitted int
}

// Matcher finds the keywords of the subscriptions of one document in its changes. Match
// depends on nothing but its argument and what NewMatcher was given, and a Matcher is safe for
// concurrent use.
type Matcher struct {
	entries []Entry
	langs   *text.Languages
	// parts are the entries that are read in the language of the document (""), or in one of
	// their own.
	parts []part

	mu      sync.Mutex
	indexes map[indexKey]*index
}

type part struct {
	language string
	entries  []int32
}

type indexKey struct {
	part     int
	language string
}

// maxIndexes bounds the indexes that a Matcher keeps beside one for each of its parts: a
// document whose language is not clear may be taken for many.
const maxIndexes = 8

// NewMatcher returns a Matcher for subs, which may not be changed afterwards. Indexes are
// built when a change first needs them. Languages that are registered later are not seen by
// indexes that are built already.
func NewMatcher(subs []Entry, langs *text.Languages) *Matcher {
	m := &Matcher{entries: subs, langs: langs, indexes: map[indexKey]*index{}}
	at := map[string]int{}
	for i := range subs {
		l := subs[i].Subscription.Language
		k, ok := at[l]
		if !ok {
			k = len(m.parts)
			at[l] = k
			m.parts = append(m.parts, part{language: l})
		}
		m.parts[k].entries = append(m.parts[k].entries, int32(i))
	}
	return m
}

// index returns the index of part k for a document in language.
func (m *Matcher) index(k int, language string) *index {
	if own := m.parts[k].language; own != "" {
		language = own
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.indexes[indexKey{k, language}]
	if x == nil {
		if len(m.indexes) >= len(m.parts)+maxIndexes {
			clear(m.indexes)
		}
		x = newIndex(m.entries, m.parts[k].entries, m.langs.Normalizer(language))
		m.indexes[indexKey{k, language}] = x
	}
	return x
}

// Match returns what c says to each subscription whose keywords it touches, in the order
// in which NewMatcher got them. The windows of c must be as diff makes them: see
// Check.
func (m *Matcher) Match(c *pipeline.Change) []Match {
	found := map[int32][]finding{}
	for k := range m.parts {
		x := m.index(k, c.Language)
		for p, hits := range x.match(c) {
			for _, h := range x.patterns[p].subs {
				found[h.entry] = append(found[h.entry], finding{h.keyword, *hits})
			}
		}
	}
	who := make([]int32, 0, len(found))
	for e := range found {
		who = append(who, e)
	}
	slices.Sort(who)
	var out []Match
	for _, e := range who {
		if diffs, omitted := assemble(m.entries[e].Subscription.WithDefaults(), c.Title, found[e]); len(diffs) > 0 {
			out = append(out, Match{m.entries[e].ID, diffs, omitted})
		}
	}
	return out
}

// match returns the hits of each pattern that c touches, in the order of the text.
func (x *index) match(c *pipeline.Change) map[int32]*hits {
	out := map[int32]*hits{}
	kept := 0
	if len(x.patterns) == 0 {
		return out
	}
	for g := range c.Groups {
		if c.Groups[g].Moved && !x.moved {
			continue
		}
		s := newSearch(x, &c.Groups[g])
		of := func(p int32) *hits {
			if out[p] == nil {
				out[p] = &hits{}
			}
			return out[p]
		}
		s.run(func(p int32, side int, pl place) {
			h := of(p)
			begun := h.begun[side].edited
			if s.moved {
				begun = h.begun[side].moved
			}
			if kept >= maxPlaces && begun > 0 {
				h.more[side].add(s.moved, 1)
				return
			}
			h.begun[side].add(s.moved, 1)
			kept++
			h.list = append(h.list, &hit{group: g, side: side, moved: s.moved, place: pl, w: s.sides[side][pl.window].Window})
		}, func(p int32, side, n int) { of(p).more[side].add(s.moved, n) })
	}
	return out
}

// hits are what a change holds of a pattern.
type hits struct {
	list []*hit
	// begun counts hits, and more the places that are only counted, by side.
	begun, more [2]number
}

// number counts what is in edited blocks, and in moved ones.
type number struct{ edited, moved int }

func (n *number) add(moved bool, by int) {
	if moved {
		n.moved += by
	} else {
		n.edited += by
	}
}

// finding is a keyword of a subscription with its hits.
type finding struct {
	keyword int32
	hits
}

// inOrder compares the places of hits in the text: groups in order, what was removed
// before what was added.
func inOrder(a, b *hit) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.side, b.side),
		cmp.Compare(a.window, b.window), cmp.Compare(a.full[0], b.full[0]), cmp.Compare(a.full[1], b.full[1]))
}
