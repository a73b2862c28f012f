package match

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// maxCoarseBlocks is how many blocks of a side of a coarse group are listed one by one. The others are
// only counted.
const maxCoarseBlocks = 1000

// edit is one place of a change: the removed text, the added text, or both.
type edit struct {
	number int // flow.Difference.Edit
	// hits are the removed text, the added text, or both; of an item that is new or gone they are all its texts.
	hits  []*hit
	moved bool
	muted mutes // what leaves all of it out
}

// edits are all edits of a change, in the order of the text. They are found when a subscription
// first asks for them.
type edits struct {
	change *flow.Change
	list   []edit
	// onlyCounted are those that are only counted, by side.
	onlyCounted [2]blockCounts
	// excerpts are the excerpts that subscriptions have asked for.
	excerpts map[excerptKey]excerpt
}

// excerptKey is all of a subscription that decides which edits it is notified of.
type excerptKey struct {
	removed, added, moved, newItems bool
	by                              mutes
	offset                          int
}

// excerpt is the first edits that a notification may contain. omitted is how many more texts were
// removed or added.
type excerpt struct {
	edits   [][]pipeline.Diff
	omitted int
}

func newEdits(c *flow.Change) *edits { return &edits{change: c} }

// collect finds the edits.
func (all *edits) collect() {
	if all.excerpts != nil {
		return
	}
	all.excerpts = map[excerptKey]excerpt{}
	c := all.change
	for i := range c.Groups {
		if g := &c.Groups[i]; g.Coarse || g.Moved {
			all.addBlocks(i, g)
		} else {
			all.addDifferences(i, g)
		}
	}
}

// addBlocks adds each block of g, the group with that index, as an edit of its own.
func (all *edits) addBlocks(group int, g *flow.Group) {
	var n [2]int
	for side, w := range eachWindow(g) {
		if n[side]++; g.Coarse && n[side] > maxCoarseBlocks {
			all.onlyCounted[side].add(g.Moved, 1)
			continue
		}
		if len(w.Tokens) > 0 {
			h := spanHit(group, g, side, w.Window, flow.Span{0, len(w.Tokens)})
			all.list = append(all.list, edit{hits: []*hit{h}, moved: g.Moved})
		}
	}
}

// addDifferences adds the differences of g, the group with that index. What was removed and what was
// added in its place is one edit.
func (all *edits) addDifferences(group int, g *flow.Group) {
	for _, d := range g.Differences {
		side, windows := newSide, g.New
		if d.Event == pipeline.Removed {
			side, windows = oldSide, g.Old
		}
		h := differenceHit(group, g, side, windows, d)
		if n := len(all.list); n > 0 && all.list[n-1].takes(h, d.Edit) {
			last := &all.list[n-1]
			last.hits = append(last.hits, h)
			if by := mutedBy(d); by == muteNothing {
				last.muted = muteNothing
			} else if last.muted > muteNothing {
				last.muted = max(last.muted, by)
			}
			continue
		}
		all.list = append(all.list, edit{number: d.Edit, hits: []*hit{h}, muted: mutedBy(d)})
	}
}

// takes reports whether h, of an edit with that number, belongs to e.
func (e *edit) takes(h *hit, number int) bool {
	last := e.hits[len(e.hits)-1]
	if last.group == h.group && h.of.IsWhole() {
		return true
	}
	return number != 0 && e.number == number && last.side == oldSide && h.side == newSide && !last.of.IsWhole() && !h.of.IsWhole()
}

// differenceHit returns d as a hit in the window that contains it. A difference that no window
// contains, because a word near it is very long, is shown without context.
func differenceHit(group int, g *flow.Group, side int, windows []flow.Window, d flow.Difference) *hit {
	end := d.Offset + len(d.Text)
	i := slices.IndexFunc(windows, func(w flow.Window) bool { return w.Offset <= d.Offset && end <= w.Offset+len(w.Text) })
	if i < 0 {
		w := &flow.Window{Offset: d.Offset, Text: d.Text, Tokens: []flow.Span{{0, len(d.Text)}}, CutLeft: true, CutRight: true}
		return spanHit(group, g, side, w, flow.Span{0, 1})
	}
	w := &windows[i]
	first, _ := slices.BinarySearchFunc(w.Tokens, d.Offset-w.Offset, func(t flow.Span, at int) int { return cmp.Compare(t[0], at) })
	last, _ := slices.BinarySearchFunc(w.Tokens, end-w.Offset, func(t flow.Span, at int) int { return cmp.Compare(t[0], at) })
	first = min(first, len(w.Tokens)-1)
	return spanHit(group, g, side, w, flow.Span{first, max(last, first+1)})
}

// spanHit returns the tokens of w as a hit. If they are too long, their beginning is shown.
func spanHit(group int, g *flow.Group, side int, w *flow.Window, tokens flow.Span) *hit {
	return &hit{group: group, of: g, side: side, w: w, place: place{full: tokens, core: flow.Span{tokens[0], tokens[0] + 1}}}
}

// excerptFor returns the edits of which a notification for s consists: only events that it asks for,
// and none twice. It leaves out those that are muted by by.
func (all *edits) excerptFor(s pipeline.Subscription, by mutes) excerpt {
	all.collect()
	of := excerptKey{s.Wants(pipeline.Removed), s.Wants(pipeline.Added), s.Moved, s.NewItems, by, *s.SnippetOffset}
	if x, ok := all.excerpts[of]; ok {
		return x
	}
	var x excerpt
	wanted := [2]bool{oldSide: of.removed, newSide: of.added}
	seen := map[string]bool{}
	room := maxDiffs
	for _, e := range all.list {
		if e.moved && !of.moved || e.muted > muteNothing && e.muted <= by {
			continue
		}
		look := ""
		var sides []*hit
		for _, h := range e.hits {
			if wanted[h.side] && (!of.newItems || h.of.Item == flow.ItemNew) {
				look += fmt.Sprint(h.side, " ", h.contentHash(of.offset), " ", h.snippet(of.offset).at, " ")
				sides = append(sides, h)
			}
		}
		if len(sides) == 0 || seen[look] {
			continue
		}
		seen[look] = true
		if room -= len(sides); room < 0 {
			room = 0
			x.omitted += len(sides)
			continue
		}
		var diffs []pipeline.Diff
		for _, h := range sides {
			d := h.diff(of.offset)
			d.Edit = len(x.edits) + 1
			diffs = append(diffs, d)
		}
		x.edits = append(x.edits, diffs)
	}
	for side, n := range all.onlyCounted {
		if !wanted[side] || of.newItems { // no item has blocks that are only counted
			continue
		}
		if x.omitted += n.edited; of.moved {
			x.omitted += n.moved
		}
	}
	all.excerpts[of] = x
	return x
}

// diffs returns the diffs of a notification for s, which has no keywords, and how many more there
// were. title is that of the page. It leaves out those that are muted by by.
func (all *edits) diffs(s pipeline.Subscription, title string, by mutes) (diffs []pipeline.Diff, omitted int) {
	x := all.excerptFor(s, by)
	omitted = x.omitted
	room := maxDiffBytes(s, title)
	for i, e := range x.edits {
		n := 0
		for _, d := range e {
			n += diffSize(d)
		}
		if room -= n; room < 0 && i > 0 {
			for _, left := range x.edits[i:] {
				omitted += len(left)
			}
			return diffs, omitted
		}
		diffs = append(diffs, e...)
	}
	return diffs, omitted
}

// counterpart returns what stands in place of the text in the other version. All subscriptions share it.
func (h *hit) counterpart() string {
	if h.other == nil {
		other := h.findCounterpart()
		h.other = &other
	}
	return *h.other
}

// findCounterpart returns the text with each edit in it undone, or made. It is empty if an edit reaches out of the text,
// or has nothing on the other side.
func (h *hit) findCounterpart() string {
	h.computeText()
	if len(h.text) != h.to-h.from {
		return "" // the words alone are shown
	}
	var other strings.Builder
	at, end := h.w.Offset+h.from, h.w.Offset+h.to
	for i := range h.of.Differences {
		d := &h.of.Differences[i]
		if d.Event != eventOfSide[h.side] || d.Offset+len(d.Text) <= at || d.Offset >= end {
			continue
		}
		replaced := otherSide(h.of.Differences, d)
		if d.Offset < at || d.Offset+len(d.Text) > end || replaced == "" {
			return ""
		}
		from := at - h.w.Offset
		other.WriteString(h.w.Text[from:d.Offset-h.w.Offset] + replaced)
		at = d.Offset + len(d.Text)
	}
	if other.Len() == 0 {
		return ""
	}
	other.WriteString(h.w.Text[at-h.w.Offset : h.to])
	if other.Len() > maxTextBytes {
		return ""
	}
	return other.String()
}

// otherSide returns what was added in place of d, or removed; empty if that is nothing, or stands in several places.
func otherSide(all []flow.Difference, d *flow.Difference) (text string) {
	for i := range all {
		switch o := &all[i]; {
		case d.Edit == 0 || o.Edit != d.Edit || o.Event == d.Event:
		case text != "":
			return ""
		default:
			text = o.Text
		}
	}
	return text
}
