// Package restless finds the numbers of a page that change at nearly every check: clocks, counters,
// ids, times such as "5 minutes ago". Subscriptions to every change are not told of them.
//
// A place is known by the shape of its block, which is the block without its numbers: so the views of
// all rows of a table are one place, which new rows share, and a place stays what it is wherever it
// moves. A Table learns which places are restless; a Set says it to later stages, which compare
// texts. What has another shape than before is never muted: "524 sold" that becomes "sold out". Amounts
// of money never are either.
package restless

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// The rule: a place is restless if it changed in beginAt of the last window checks, until it stood for
// calmAfter checks. A check counts for a place if at least one in minShare of the blocks with its shape
// changed there.
const (
	beginAt   = 3
	window    = 4
	calmAfter = 64
	minShare  = 4
)

// MaxPlaces is how many places a Table holds. Subscriptions are told of changes of any others.
const MaxPlaces = 64

// Place is a number in the blocks of one shape: the first, the second and so on.
type Place struct {
	Shape uint64
	Nth   int
}

// Table is what is remembered of the places of a document. It holds the numbers of checks, so that it
// stays as it is while nothing changes. The zero Table remembers nothing.
type Table struct {
	Entries []Entry `cbor:"1,keyasint,omitempty"`
	// Other is the last check at which something else changed than the numbers of Entries.
	Other uint64 `cbor:"2,keyasint,omitempty"`
	// Asked says that the subscribers were told that nothing but restless places changes, and were asked
	// whether they want to be told of them.
	Asked bool `cbor:"3,keyasint,omitempty"`
	// Rotations are the places whose words change, in the text with the hash Text.
	Rotations []Rotation `cbor:"4,keyasint,omitempty"`
	Text      uint64     `cbor:"5,keyasint,omitempty"`
}

// Entry is a place with the last checks at which it changed, the latest first.
type Entry struct {
	Shape uint64          `cbor:"1,keyasint"`
	Nth   int             `cbor:"2,keyasint,omitempty"`
	Marks [beginAt]uint64 `cbor:"3,keyasint"`
	// Began is the check at which the place became restless, 0 if it is not. Said says that the
	// subscribers were told.
	Began uint64 `cbor:"4,keyasint,omitempty"`
	Said  bool   `cbor:"5,keyasint,omitempty"`
}

// isRestless reports whether e is restless at a check. What is decided at a check holds from the next one.
func (e *Entry) isRestless(check uint64) bool {
	return e.Began > 0 && e.Began < check && check-e.Marks[0] <= calmAfter
}

// Restless returns the places that are restless at a check.
func (t *Table) Restless(check uint64) Set {
	set := Set{}
	for i := range t.Entries {
		if e := &t.Entries[i]; e.isRestless(check) {
			set[Place{e.Shape, e.Nth}] = true
		}
	}
	return set
}

// Lesson is what Learn found out about a text.
type Lesson struct {
	// Began are the places that are restless from the next check on.
	Began pipeline.Muting
	// Quiet says that the text differs from the one before in restless places alone, and in
	// times that passed.
	Quiet bool
	// Words are the edits in places that are restless in their words: the bytes [0, 1) of the older text became the bytes
	// [2, 3) of the newer one. BeganWords are the places that are restless so from the next check on. NewWords says that
	// such a place changed in another way than it does.
	Words      [][4]int
	BeganWords pipeline.Muting
	NewWords   bool
}

// Learn notes which numbers differ between the texts of two successive checks, of which the second has
// the number check. between is the time between them. It does not change what t shares
// with a copy.
func (t *Table) Learn(old, new string, check uint64, between time.Duration) Lesson {
	t.Entries = slices.Clone(t.Entries)
	muted := t.Restless(check)
	c := compare(old, new)
	quiet := c.inOrder && 2*c.pairedBytes() <= max(len(new), quietAnyway)
	changed := make(map[Place]int)
	for _, p := range c.pairs {
		for i := range p[1].numbers {
			if p[0].value(i) == p[1].value(i) || explains(between, p[0].numbers[i], p[1].numbers[i]) {
				continue
			}
			if p[1].numbers[i].kind == kindMoney {
				c.other = true
				continue
			}
			changed[p[1].place(i)]++
			quiet = quiet && muted[p[1].place(i)]
		}
	}
	count := c.countShapes(changed)
	entries := make(map[Place]int, len(t.Entries))
	for i, e := range t.Entries {
		entries[Place{e.Shape, e.Nth}] = i
	}
	for place, n := range changed {
		if n*minShare >= count[place.Shape] {
			t.mark(place, check, entries)
		} else if !muted[place] {
			c.other = true
		}
	}
	if c.other {
		t.Other = check
	}
	t.forget(check)
	l := Lesson{Began: t.begin(&c, check), Quiet: quiet && !c.other}
	t.learnWords(&c, check, &l)
	return l
}

// mark notes a change of a place. entries are the indexes of t.Entries.
func (t *Table) mark(p Place, check uint64, entries map[Place]int) {
	i, ok := entries[p]
	if !ok {
		i = len(t.Entries)
		t.Entries = append(t.Entries, Entry{Shape: p.Shape, Nth: p.Nth})
	}
	e := &t.Entries[i]
	if e.Began > 0 && !e.isRestless(check) && e.Began != check {
		*e = Entry{Shape: p.Shape, Nth: p.Nth} // it stood too long
	}
	copy(e.Marks[1:], e.Marks[:])
	e.Marks[0] = check
	if first := e.Marks[beginAt-1]; e.Began == 0 && first > 0 && check-first < window {
		e.Began = check
	}
}

// forget drops the entries that stood, and of too many those that stood longest.
func (t *Table) forget(check uint64) {
	t.Entries = slices.DeleteFunc(t.Entries, func(e Entry) bool { return check-e.Marks[0] > calmAfter })
	if len(t.Entries) <= MaxPlaces {
		return
	}
	slices.SortStableFunc(t.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(min(b.Began, 1), min(a.Began, 1)), cmp.Compare(b.Marks[0], a.Marks[0]),
			cmp.Compare(b.Marks[1], a.Marks[1]), cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.Nth, b.Nth))
	})
	t.Entries, t.Other = t.Entries[:MaxPlaces], check // subscriptions are told of the dropped ones
}

// begin returns the places that became restless and were not named yet.
func (t *Table) begin(c *comparison, check uint64) pipeline.Muting {
	named := make(Set)
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Began > 0 && !e.Said {
			named[Place{e.Shape, e.Nth}] = true
		}
	}
	if len(named) == 0 && !t.Asked {
		return pipeline.Muting{}
	}
	whole := t.isWhole(c.new, check+1)
	if t.Asked && !whole {
		named = t.Restless(check + 1) // now they are muted
	}
	if len(named) == 0 {
		return pipeline.Muting{}
	}
	return pipeline.Muting{Places: c.new.labels(named, pipeline.MaxNamedPlaces), Count: len(named), Whole: whole}
}

// SaidWords notes that the subscribers were told of the places that are restless in their words.
func (t *Table) SaidWords() {
	t.Rotations = slices.Clone(t.Rotations)
	for i := range t.Rotations {
		t.Rotations[i].Said = t.Rotations[i].Began > 0
	}
}

// Said notes that the subscribers were told m. It does not change the Entries that t shares with a copy.
func (t *Table) Said(m pipeline.Muting) {
	t.Entries, t.Asked = slices.Clone(t.Entries), m.Whole
	for i := range t.Entries {
		t.Entries[i].Said = t.Entries[i].Began > 0
	}
}

// isWhole reports whether nothing but restless places changed in the last checks before check, and these take up
// at least half of content.
func (t *Table) isWhole(content *Text, check uint64) bool {
	if t.Other > 0 && check-t.Other <= calmAfter {
		return false
	}
	for i := range t.Entries {
		if !t.Entries[i].isRestless(check) {
			return false
		}
	}
	return t.Restless(check).covers(content)
}

// comparison is a pair of texts.
type comparison struct {
	old, new *Text
	// Their blocks before first are the same, and so are those behind the blocks [first, oldEnd) and [first, newEnd).
	first, oldEnd, newEnd int
	// pairs are the changed blocks of both that have the same shape.
	pairs [][2]*Block
	// other says that something changed that is not in pairs. inOrder says that each block of new stands
	// where the old one stood that it equals or is paired with.
	other, inOrder bool
}

// compare pairs the blocks of two texts that are equal but for their numbers. What both have counts as
// unchanged wherever it stands.
func compare(old, new string) comparison {
	c := comparison{old: NewText(old), new: NewText(new)}
	c.oldEnd, c.newEnd = len(c.old.spans), len(c.new.spans)
	for c.first < min(c.oldEnd, c.newEnd) && c.old.span(c.first) == c.new.span(c.first) {
		c.first++
	}
	for min(c.oldEnd, c.newEnd) > c.first && c.old.span(c.oldEnd-1) == c.new.span(c.newEnd-1) {
		c.oldEnd, c.newEnd = c.oldEnd-1, c.newEnd-1
	}
	if c.inOrder = c.oldEnd == c.newEnd; c.inOrder {
		c.pairByPosition()
	}
	if !c.inOrder {
		c.pairByShape()
	}
	return c
}

// pairByPosition pairs blocks in the same positions. If one has no partner of its shape there, it sets inOrder
// to false, and has no other effect.
func (c *comparison) pairByPosition() {
	for i := c.first; i < c.oldEnd; i++ {
		if c.old.span(i) == c.new.span(i) {
			continue
		}
		x, y := c.old.block(i), c.new.block(i)
		if x.Shape != y.Shape || len(x.numbers) != len(y.numbers) || len(x.numbers) == 0 {
			c.pairs, c.inOrder = nil, false
			return
		}
		c.pairs = append(c.pairs, [2]*Block{x, y})
	}
}

// pairByShape pairs the first block of a shape with the first one, the second with the second.
func (c *comparison) pairByShape() {
	left := make(map[string]int, c.oldEnd-c.first)
	for i := c.first; i < c.oldEnd; i++ {
		left[c.old.span(i)]++
	}
	var changed []int // blocks of new
	for i := c.first; i < c.newEnd; i++ {
		if t := c.new.span(i); left[t] > 0 {
			left[t]--
		} else {
			changed = append(changed, i)
		}
	}
	byShape := make(map[uint64][]*Block)
	for i := c.oldEnd - 1; i >= c.first; i-- { // of equal ones the first are unchanged
		if t := c.old.span(i); left[t] > 0 {
			left[t]--
			b := c.old.block(i)
			byShape[b.Shape] = append(byShape[b.Shape], b)
		}
	}
	unpaired := 0
	for _, bs := range byShape {
		unpaired += len(bs)
	}
	for _, i := range changed {
		y := c.new.block(i)
		bs := byShape[y.Shape]
		if len(bs) == 0 || len(y.numbers) == 0 {
			c.other = true
			continue
		}
		x := bs[len(bs)-1] // the first one, since they are in reverse order
		byShape[y.Shape] = bs[:len(bs)-1]
		unpaired--
		if len(x.numbers) == len(y.numbers) {
			c.pairs = append(c.pairs, [2]*Block{x, y})
		} else {
			c.other = true
		}
	}
	c.other = c.other || unpaired > 0
}

// countShapes counts the blocks of new with the shapes of changed places.
func (c *comparison) countShapes(changed map[Place]int) map[uint64]int {
	count := make(map[uint64]int, len(changed))
	if len(changed) == 0 {
		return count
	}
	for p := range changed {
		count[p.Shape] = 0
	}
	for i := range c.new.spans {
		if b := c.new.block(i); len(b.numbers) > 0 {
			if n, ok := count[b.Shape]; ok {
				count[b.Shape] = n + 1
			}
		}
	}
	return count
}

// quietAnyway is the size in bytes of a text that may change as a whole in its restless places.
const quietAnyway = 2000

// pairedBytes is the size of the changed blocks.
func (c *comparison) pairedBytes() (n int) {
	for _, p := range c.pairs {
		n += len(p[1].Text)
	}
	return n
}

// labels shows the places, up to most, each by a block with the number in brackets.
func (t *Text) labels(places Set, most int) []string {
	var all []string
	done := make(map[uint64]bool)
	for i := range t.spans {
		if len(all) == most {
			break
		}
		b := t.block(i)
		if done[b.Shape] {
			continue
		}
		var marked []int
		for i := range b.numbers {
			if places[b.place(i)] {
				marked = append(marked, i)
			}
		}
		if len(marked) > 0 {
			done[b.Shape] = true
			all = append(all, b.label(marked))
		}
	}
	return all
}

// maxLabel is the length of a label in bytes, and labelContext how much of it stands before its first number.
const (
	maxLabel     = 80
	labelContext = 40
)

// label returns the text of b with the given numbers in brackets, cut to a readable length.
func (b *Block) label(marked []int) string {
	var s strings.Builder
	from := 0
	if first := b.numbers[marked[0]].start; first > labelContext {
		from = first - labelContext
		for from < first && !utf8.RuneStart(b.Text[from]) {
			from++
		}
		if at := strings.IndexByte(b.Text[from:first], ' '); at >= 0 {
			from += at + 1
		}
		s.WriteString("… ")
	}
	for _, i := range marked {
		n := b.numbers[i]
		if n.end-from > maxLabel && i != marked[0] {
			break
		}
		s.WriteString(b.Text[from:n.start])
		s.WriteString("[" + b.value(i) + "]")
		from = n.end
	}
	rest := b.Text[from:]
	if room := max(maxLabel-s.Len(), 0); len(rest) > room {
		for room > 0 && !utf8.RuneStart(rest[room]) {
			room--
		}
		if rest = rest[:room]; rest != "" {
			if at := strings.LastIndexByte(rest, ' '); at >= 0 {
				rest = rest[:at]
			}
		}
		rest += " …"
	}
	s.WriteString(rest)
	return strings.TrimSpace(s.String())
}
