package match

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// Entry is a subscription with the name under which its matches are returned.
type Entry struct {
	ID           string
	Subscription pipeline.Subscription
}

// Match is the result of matching a change for one subscription.
type Match struct {
	ID string
	// Diffs are in the order of the text, at least one.
	Diffs []pipeline.Diff
	// Omitted is how many more diffs there were. A notification has at most 50 diffs, or one
	// for each keyword and event if that is more, and at most flow.MaxNotification bytes.
	Omitted int
}

// Matcher finds the keywords of the subscriptions of one document in its changes. A subscription
// without keywords matches every change. A Matcher is safe
// for concurrent use. The result of Match depends only on its argument and on those of
// NewMatcher.
type Matcher struct {
	entries []Entry
	langs   *text.Languages

	mu      sync.Mutex
	indexes map[string]*index // by the language of the document
}

// maxIndexes bounds the indexes of a Matcher. The language of a document may be detected
// differently each time.
const maxIndexes = 8

// NewMatcher returns a Matcher for subs, which must not be changed afterwards. It builds an
// index when a change first needs it; languages that are registered later do not affect it.
func NewMatcher(subs []Entry, langs *text.Languages) *Matcher {
	return &Matcher{entries: subs, langs: langs, indexes: map[string]*index{}}
}

// index returns the index for a document in language.
func (m *Matcher) index(language string) *index {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.indexes[language]
	if x == nil {
		if len(m.indexes) >= maxIndexes {
			clear(m.indexes)
		}
		x = newIndex(language, m.langs)
		for i := range m.entries {
			x.add(strconv.Itoa(i), m.entries[i].Subscription)
		}
		m.indexes[language] = x
	}
	return x
}

// Match returns the subscriptions that c matches, in the order in which NewMatcher got them.
// The windows of c must be as package diff makes them: tokens ascend, and edits lie within
// them.
func (m *Matcher) Match(c *flow.Change) []Match {
	found := m.index(c.Language).findMatches(c)
	all := newEdits(c)
	var out []Match
	for _, e := range slices.Sorted(maps.Keys(found)) {
		if diffs, omitted := diffsFor(c, all, m.entries[e].Subscription, found[e]); len(diffs) > 0 {
			out = append(out, Match{m.entries[e].ID, diffs, omitted})
		}
	}
	return out
}

// diffsFor returns the diffs of a notification of c for s, in which found was found, and how many
// more there were. There are none where the change is smaller than s asks for. all are the edits of
// c, for a subscription without keywords.
func diffsFor(c *flow.Change, all *edits, s pipeline.Subscription, found []finding) (diffs []pipeline.Diff, omitted int) {
	if s.Value != nil {
		if _, ok := s.ValueChange(oldAndNewValue(c)); !ok {
			return nil, 0
		}
	}
	size, mutes := c.Size, mutesOf(c, s)
	if mutes > muteNothing {
		size = size.Told(mutes == muteWords)
	}
	if !s.MinChange.Admits(size.Changed(s.Moved), size.Length()) {
		return nil, 0
	}
	if len(s.Keywords) == 0 {
		return all.diffs(s.WithDefaults(), titleFor(c, s), mutes)
	}
	return keywordDiffs(s.WithDefaults(), titleFor(c, s), found)
}

// titleFor returns the title of a notification of c for s: what s is called, or else that of the page.
func titleFor(c *flow.Change, s pipeline.Subscription) string { return cmp.Or(s.Title, c.Title) }

// mutes says of which muted differences a subscription is not told. Each includes those before it.
type mutes int

const (
	muteNothing mutes = iota
	muteNumbers       // and times that passed
	muteWords
)

// mutesOf returns of which muted differences of c s is not told.
func mutesOf(c *flow.Change, s pipeline.Subscription) mutes {
	switch {
	case !hasRestless(s) || s.Restless == "" && c.Whole:
		return muteNothing
	case s.Restless == pipeline.RestlessMute:
		return muteWords
	}
	return muteNumbers
}

// mutedBy returns the first of mutes that leaves d out, muteNothing if none does.
func mutedBy(d flow.Difference) mutes {
	switch d.Muted {
	case "":
		return muteNothing
	case flow.MutedWords:
		return muteWords
	}
	return muteNumbers
}

// hasRestless reports whether s may be told less than every change because of restless places.
func hasRestless(s pipeline.Subscription) bool {
	return len(s.Keywords) == 0 && s.Value == nil && s.Restless != pipeline.RestlessTell
}

// findHits returns the hits of each pattern that c matches, in the order of the text.
func (x *patternIndex) findHits(c *flow.Change) map[int32]*hits {
	out := map[int32]*hits{}
	kept := 0
	if len(x.patterns) == 0 {
		return out
	}
	for g := range c.Groups {
		if c.Groups[g].Moved && !x.wantsMoved {
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
			begun := h.listed[side].edited
			if s.moved {
				begun = h.listed[side].moved
			}
			if kept >= maxPlaces && begun > 0 {
				h.onlyCounted[side].add(s.moved, 1)
				h.onlyCounted[side].addItem(&c.Groups[g], 1)
				return
			}
			h.listed[side].add(s.moved, 1)
			kept++
			h.list = append(h.list, &hit{group: g, of: &c.Groups[g], side: side, moved: s.moved, place: pl, w: s.sides[side][pl.window].Window})
		}, func(p int32, side, n int) {
			of(p).onlyCounted[side].add(s.moved, n)
			of(p).onlyCounted[side].addItem(&c.Groups[g], n)
		})
	}
	return out
}

// hits are the hits of one pattern in a change.
type hits struct {
	list []*hit
	// listed counts the hits in list, and onlyCounted all others, by side.
	listed, onlyCounted [2]blockCounts
}

// blockCounts count what is in edited blocks, and of that in new items, and what is in moved blocks.
type blockCounts struct{ edited, inNewItems, moved int }

func (n *blockCounts) addItem(g *flow.Group, by int) {
	if g.Item == flow.ItemNew {
		n.inNewItems += by
	}
}

func (n *blockCounts) add(moved bool, by int) {
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

// compareHits compares hits by their order in the text: by group, and within it removed before
// added.
func compareHits(a, b *hit) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.side, b.side),
		cmp.Compare(a.window, b.window), cmp.Compare(a.full[0], b.full[0]), cmp.Compare(a.full[1], b.full[1]))
}

// checkWindows returns what is wrong with the windows of c, or nil: tokens ascend and lie within the
// text, none is empty, edits ascend and lie within the tokens.
func checkWindows(c *flow.Change) error {
	for g := range c.Groups {
		for _, side := range [2][]flow.Window{c.Groups[g].Old, c.Groups[g].New} {
			for i := range side {
				w := &side[i]
				if !areAscending(w.Tokens, len(w.Text), 1) || !areAscending(w.Edits, len(w.Tokens), 0) {
					return fmt.Errorf("change %s: group %d: a window whose tokens or edits do not fit its text", c.ID, g)
				}
			}
		}
	}
	return nil
}

// areAscending reports whether the spans are in order, within limit, and of at least the given length.
func areAscending(spans []flow.Span, limit, least int) bool {
	end := 0
	for _, s := range spans {
		if s[0] < end || s[1] < s[0]+least || s[1] > limit {
			return false
		}
		end = s[1]
	}
	return true
}

// eachWindow returns the windows of g, each with its side. Those of a coarse group are made
// from its blocks one at a time, to save memory.
func eachWindow(g *flow.Group) iter.Seq2[int, window] {
	return func(yield func(int, window) bool) {
		if g.Coarse {
			eachBlock(g, yield)
			return
		}
		for side, ws := range [2][]flow.Window{oldSide: g.Old, newSide: g.New} {
			for i := range ws {
				if !yield(side, newWindow(&ws[i], g.Moved)) {
					return
				}
			}
		}
	}
}

// eachBlock yields the blocks of the stretches of a coarse group, in order.
func eachBlock(g *flow.Group, yield func(int, window) bool) {
	for side, stretch := range stretches(g) {
		for w := range blocksOf(stretch.Offset, stretch.Text) {
			w.Edits = []flow.Span{{0, len(w.Tokens)}}
			if !yield(side, newWindow(w.Window, g.Moved)) {
				return
			}
		}
	}
}

// stretches returns the stretches of a coarse group, the older side first.
func stretches(g *flow.Group) iter.Seq2[int, flow.Window] {
	return func(yield func(int, flow.Window) bool) {
		for side, ws := range [2][]flow.Window{oldSide: g.Old, newSide: g.New} {
			for _, w := range ws {
				if !yield(side, w) {
					return
				}
			}
			for _, d := range g.Differences {
				if d.Event == eventOfSide[side] && !yield(side, flow.Window{Offset: d.Offset, Text: d.Text}) {
					return
				}
			}
		}
	}
}

// containsTerm reports whether w contains a word of any keyword.
func (x *patternIndex) containsTerm(w *window) bool {
	for c := range x.classes {
		keep := x.keepFunc(uint8(c), w)
		for i := range w.Tokens {
			if keep(i) && x.dicts[c][x.norm.Term(w.token(i), x.classes[c].form)] != 0 {
				return true
			}
		}
	}
	return false
}
