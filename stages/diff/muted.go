package diff

import (
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/restless"
)

// neverMostOf is how many tokens a text has of which never more than half is muted: what changes so much may
// be another text.
const neverMostOf = 300

// muteRestless marks the differences of c, the change of s, that lie in restless places alone.
func muteRestless(c *flow.Change, s flow.Snapshot) {
	set, err := restless.UnpackSet(s.Restless)
	if err != nil {
		return // all is told
	}
	m := muter{Snapshot: s, set: set, old: restless.NewText(s.Old), new: restless.NewText(s.New), alone: make(map[uint64]*loneBlocks), items: make(map[string]*returningItems)}
	for i := range c.Groups {
		g := &c.Groups[i]
		if g.IsWhole() {
			m.noteItem(g, &c.Size)
			continue
		}
		for k := range g.Differences {
			if d := &g.Differences[k]; d.Edit == 0 {
				continue
			} else if n := len(m.edit); n > 0 && m.edit[n-1].Edit != d.Edit {
				m.finish(&c.Size)
			}
			m.edit, m.groups = append(m.edit, &g.Differences[k]), append(m.groups, g)
		}
	}
	m.finish(&c.Size)
	m.pairLoneBlocks(&c.Size)
	m.pairItems(&c.Size)
	size := &c.Size
	if size.Length() < neverMostOf {
		return
	}
	if 2*max(size.MutedRemoved, size.MutedAdded) > size.Length() {
		size.MutedRemoved, size.MutedAdded = 0, 0
		unmute(c, func(why string) bool { return why != flow.MutedWords })
	}
	if 2*max(size.MutedRemoved+size.WordsRemoved, size.MutedAdded+size.WordsAdded) > size.Length() {
		size.WordsRemoved, size.WordsAdded = 0, 0
		unmute(c, func(why string) bool { return why == flow.MutedWords })
	}
}

// unmute lets the differences be told that are muted for such a reason.
func unmute(c *flow.Change, because func(why string) bool) {
	for i := range c.Groups {
		for k := range c.Groups[i].Differences {
			if d := &c.Groups[i].Differences[k]; because(d.Muted) {
				d.Muted = ""
			}
		}
	}
}

// muter mutes the edits of a change, one after the other.
type muter struct {
	flow.Snapshot
	set      restless.Set
	old, new *restless.Text
	// edit are the differences of the present edit, and groups their groups.
	edit   []*flow.Difference
	groups []*flow.Group
	// alone are the blocks that were removed or added without a block of the other side, by shape.
	alone map[uint64]*loneBlocks
	// items are those that are new or gone, by the hash of their texts without what is muted.
	items map[string]*returningItems
}

// returningItems are items that only one version has. They are equal but for what is muted.
type returningItems struct{ gone, came []*flow.Group }

// loneBlocks are blocks of one shape that were removed or added, each with its difference and its group.
type loneBlocks struct {
	removed, added int
	edit           []*flow.Difference
	groups         []*flow.Group
}

// noteLone notes d, a block that has no block of the other side beside it.
func (m *muter) noteLone(b *restless.Block, d *flow.Difference, g *flow.Group) {
	of := m.alone[b.Shape]
	if of == nil {
		of = new(loneBlocks)
		m.alone[b.Shape] = of
	}
	if d.Event == pipeline.Removed {
		of.removed++
	} else {
		of.added++
	}
	of.edit, of.groups = append(of.edit, d), append(of.groups, g)
}

// pairLoneBlocks pairs a removed block with the only added one of its shape: so few of its words stayed that
// they belong to different groups, as in a date at midnight.
func (m *muter) pairLoneBlocks(size *flow.Size) {
	for _, of := range m.alone {
		if of.removed == 1 && of.added == 1 {
			m.edit, m.groups = of.edit, of.groups
			m.finish(size)
		}
	}
}

// inWords reports whether all differences lie in places that are restless in their words.
func (m *muter) inWords(all []*flow.Difference) bool {
	for _, d := range all {
		side := 2
		if d.Event == pipeline.Removed {
			side = 0
		}
		within := func(e [4]int) bool { return e[side] <= d.Offset && d.Offset+len(d.Text) <= e[side+1] }
		if !slices.ContainsFunc(m.Words, within) {
			return false
		}
	}
	return len(m.Words) > 0
}

// mute notes why d, a difference of g, is muted.
func mute(d *flow.Difference, g *flow.Group, why string, size *flow.Size) {
	d.Muted = why
	switch words := why == flow.MutedWords; {
	case d.Event == pipeline.Removed && words:
		size.WordsRemoved += countEditedIn(g.Old, d)
	case d.Event == pipeline.Removed:
		size.MutedRemoved += countEditedIn(g.Old, d)
	case words:
		size.WordsAdded += countEditedIn(g.New, d)
	default:
		size.MutedAdded += countEditedIn(g.New, d)
	}
}

// noteItem notes g, an item that is new or gone, unless it lies in a place that is restless in its words.
func (m *muter) noteItem(g *flow.Group, size *flow.Size) {
	n := len(g.Differences)
	if n == 0 {
		return
	}
	all := make([]*flow.Difference, n)
	for i := range g.Differences {
		all[i] = &g.Differences[i]
	}
	if m.inWords(all) {
		for _, d := range all {
			mute(d, g, flow.MutedWords, size)
		}
		return
	}
	content, text := m.New, m.new
	if g.Item == flow.ItemGone {
		content, text = m.Old, m.old
	}
	first, last := text.At(g.Differences[0].Offset), text.At(g.Differences[n-1].Offset)
	hash := m.set.Hash(content[first.Start : last.Start+len(last.Text)])
	of := m.items[hash]
	if of == nil {
		of = new(returningItems)
		m.items[hash] = of
	}
	if g.Item == flow.ItemGone {
		of.gone = append(of.gone, g)
	} else {
		of.came = append(of.came, g)
	}
}

// pairItems mutes items that seem to be gone and to have come again: so much of a short item was a restless number or
// a time that the rest is too little for the same item.
func (m *muter) pairItems(size *flow.Size) {
	for _, of := range m.items {
		if len(of.gone) != len(of.came) {
			continue
		}
		for i, gone := range of.gone {
			m.muteItem(gone, of.came[i], size)
		}
	}
}

// muteItem mutes two items that differ in restless places alone.
func (m *muter) muteItem(gone, came *flow.Group, size *flow.Size) {
	if len(gone.Differences) != len(came.Differences) {
		return
	}
	why := ""
	for i := range gone.Differences {
		old, new := m.old.At(gone.Differences[i].Offset), m.new.At(came.Differences[i].Offset)
		if old.Text == new.Text {
			continue
		}
		from, to := [2]int{old.Start, old.Start + len(old.Text)}, [2]int{new.Start, new.Start + len(new.Text)}
		switch muted, learned := m.set.Mutes(old, new, from, to, m.Elapsed); {
		case !muted:
			return
		case learned:
			why = flow.MutedRestless
		case why == "":
			why = flow.MutedPassed
		}
	}
	if why == "" {
		return
	}
	for i := range gone.Differences {
		mute(&gone.Differences[i], gone, why, size)
		mute(&came.Differences[i], came, why, size)
	}
}

// finish mutes the present edit if it lies in restless places alone, and begins the next one.
func (m *muter) finish(size *flow.Size) {
	if why := m.reason(); why != "" {
		for i, d := range m.edit {
			mute(d, m.groups[i], why, size)
		}
	}
	m.edit, m.groups = m.edit[:0], m.groups[:0]
}

// reason returns why the present edit is muted; empty if it is told.
func (m *muter) reason() string {
	if m.inWords(m.edit) {
		return flow.MutedWords
	}
	var old, new *restless.Block
	var from, to [2]int
	for _, d := range m.edit {
		at := [2]int{d.Offset, d.Offset + len(d.Text)}
		switch {
		case d.Event == pipeline.Removed && old == nil:
			old, from = m.old.At(d.Offset), at
		case d.Event == pipeline.Added && new == nil:
			new, to = m.new.At(d.Offset), at
		default:
			return ""
		}
	}
	// What was only removed from a block or added in it has the other block of its group beside it.
	if old == nil && new != nil {
		old = onlyBlock(m.old, m.groups[0].Old)
	} else if new == nil && old != nil {
		new = onlyBlock(m.new, m.groups[0].New)
	}
	switch {
	case old == nil && new == nil:
		return ""
	case old == nil:
		m.noteLone(new, m.edit[0], m.groups[0])
		return ""
	case new == nil:
		m.noteLone(old, m.edit[0], m.groups[0])
		return ""
	}
	switch muted, learned := m.set.Mutes(old, new, from, to, m.Elapsed); {
	case !muted:
		return ""
	case learned:
		return flow.MutedRestless
	}
	return flow.MutedPassed
}

// onlyBlock returns the block of text in which all windows are, or nil if they are in several.
func onlyBlock(text *restless.Text, windows []flow.Window) *restless.Block {
	if len(windows) == 0 {
		return nil
	}
	b := text.At(windows[0].Offset)
	for _, w := range windows[1:] {
		if w.Offset >= b.Start+len(b.Text) {
			return nil
		}
	}
	return b
}

// countEditedIn returns how many tokens of the windows are edited within d.
func countEditedIn(windows []flow.Window, d *flow.Difference) (n int) {
	for i := range windows {
		w := &windows[i]
		if d.Offset < w.Offset || d.Offset >= w.Offset+len(w.Text) {
			continue
		}
		for _, e := range w.Edits {
			for _, t := range w.Tokens[e[0]:e[1]] {
				if at := w.Offset + t[0]; at >= d.Offset && at < d.Offset+len(d.Text) {
					n++
				}
			}
		}
	}
	return n
}
