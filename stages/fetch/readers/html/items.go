package html

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/pipeline"
)

// Bounds of what an itemFinder looks at.
const (
	// minSiblings is how many children of one parent make a list if they look alike.
	minSiblings = 3
	// maxEvents bounds the elements and links of a page. What follows has no items.
	maxEvents = 200_000
	// maxIdentities is how many identities of one item are looked at.
	maxIdentities = 8
	// maxClasses is how many classes of an element are compared.
	maxClasses = 3
)

// itemFinder finds the items of a page and their keys. It is told of the elements that end blocks, and of the links,
// in document order. Items are list items, table rows, articles, and cards: at least minSiblings children of one parent
// that look alike, and what begins with one child that is a link, again and again: see record. Names, classes and
// targets are kept as hashes: a page has many, and only whether they are equal matters.
type itemFinder struct {
	root     openBox // the body
	open     []openBox
	boxes    []box
	events   []event
	links    []link
	classes  []uint32 // used by chooseCards
	children []child  // of the open elements
	leads    []int32  // used by chooseRecords
	records  []record
	count    int32 // of elements
	headings int   // open ones
	// linked is the box of the open a element, if inLink is set: it began outside of a block, in the element
	// with the number parent.
	inLink bool
	linked int32
	parent int32
}

// openBox is an element whose end has not come yet.
type openBox struct {
	box      int32 // in boxes, or none
	id       int32
	look     uint32 // of its name and first class
	lastCard int32  // the last of its children that may be cards
	cards    int32
	child    int32 // in children, or none
	within   int32 // where its own children begin there
	outer    int32 // of a list: the list item in which it stands, or none
}

// box is an element that may be an item.
type box struct {
	start, end int32 // where its text begins and ends
	list       uint32
	previous   int32 // the sibling before it that may be a card
	looks      [maxClasses]uint32
	id         uint32 // of its attribute
	identities uint8
	kind       atom.Atom
	isItem     bool
	bare       bool  // a card without a class
	term       int32 // of a term and its descriptions: the number of the element in which they stand
	outer      int32 // the list item in whose list it stands, or none
	listAt     int32 // where the first list in a list item begins, or none
	// inner and keyed count the items of the lists in a list item, and those of them that have a key.
	inner, keyed int32
}

// isSplit reports whether the item ends where the first list in it begins, so that its items are items of their own. If
// it alone has a key, they are parts of it.
func (b *box) isSplit(key pipeline.Key) bool { return b.inner > 0 && (key == 0 || b.keyed > 0) }

const none = -1

// link is the target of a link.
type link struct {
	target    uint32
	inHeading bool
}

// event is the start or the end of a box, the start of the first list in it, or a link.
type event struct {
	at, of int32 // of is an index of boxes or links
	kind   uint8
}

const (
	eventStart = iota
	eventEnd
	eventLink
	eventList
)

// mayBeCard are the elements that are items where several siblings look alike.
func mayBeCard(a atom.Atom) bool {
	switch a {
	case atom.Div, atom.Section, atom.Details, atom.Figure, atom.Blockquote, atom.Tbody:
		return true
	}
	return false
}

// begin notes the beginning of el, which ends a block, at a place of the text.
func (f *itemFinder) begin(el *element, at int) {
	if el.kind&heading != 0 {
		f.headings++
	}
	f.count++
	o := openBox{box: none, id: f.count, look: el.look(), child: f.beginChild(el, at), outer: none}
	if el.atom == atom.Ul || el.atom == atom.Ol {
		o.outer = f.beginList(at)
	}
	o.within = int32(len(f.children))
	if el.kind&tablePart != 0 && el.atom != atom.Table {
		o.look = f.parentBox().look // a table may have a tbody, or not
	}
	card := mayBeCard(el.atom)
	if named := el.kind&item != 0 || el.atom == atom.Article; (named || card) && len(f.events) < maxEvents {
		b := box{start: int32(at), end: int32(at), kind: el.atom, isItem: named, list: uint32(el.atom), looks: el.looks(), id: el.dataID, bare: card && el.classes[0] == 0, outer: none, listAt: none}
		if el.atom == atom.Li && len(f.open) > 0 {
			b.outer = f.parentBox().outer
		}
		if b.id == 0 && named {
			b.id = el.id
		}
		if o.box = f.reopenTerm(el, at); o.box == none {
			if el.atom == atom.Dt {
				b.term = f.parentBox().id + 1
			}
			o.box = int32(len(f.boxes))
			f.events = append(f.events, event{int32(at), o.box, eventStart})
			f.addBox(b, card)
		}
		if o.child != none {
			f.children[o.child].box = o.box
		}
	}
	f.open = append(f.open, o)
}

// beginList notes that a list begins, and returns the list item in which it stands, or none.
func (f *itemFinder) beginList(at int) int32 {
	i := f.parentBox().box
	if len(f.open) == 0 || i == none || f.boxes[i].kind != atom.Li {
		return none
	}
	if b := &f.boxes[i]; b.listAt == none {
		b.listAt = int32(at)
		f.events = append(f.events, event{int32(at), i, eventList})
	}
	return i
}

// reopenTerm returns the box of the term that el describes, if it ended just before: both are one item. Otherwise it
// returns none.
func (f *itemFinder) reopenTerm(el *element, at int) int32 {
	n := len(f.events) - 1
	if el.atom != atom.Dd || n < 0 || f.events[n].kind != eventEnd || int(f.events[n].at) != at {
		return none
	}
	term := f.events[n].of
	if f.boxes[term].term != f.parentBox().id+1 {
		return none
	}
	f.events = f.events[:n]
	return term
}

// addBox adds a box to the innermost open element.
func (f *itemFinder) addBox(b box, card bool) {
	parent := f.parentBox()
	b.list = mix(b.list, parent.look)
	if card {
		if b.previous = none; parent.cards > 0 {
			b.previous = parent.lastCard
		}
		parent.lastCard = int32(len(f.boxes))
		parent.cards++
	}
	f.boxes = append(f.boxes, b)
}

// parentBox returns the innermost open element.
func (f *itemFinder) parentBox() *openBox {
	if n := len(f.open); n > 0 {
		return &f.open[n-1]
	}
	return &f.root
}

// end notes the end of an element of kind k.
func (f *itemFinder) end(k kind, at int) {
	if k&heading != 0 {
		f.headings--
	}
	n := len(f.open) - 1
	if n < 0 {
		return
	}
	o := f.open[n]
	f.open = f.open[:n]
	if o.box != none {
		f.boxes[o.box].end = int32(at)
		f.events = append(f.events, event{int32(at), o.box, eventEnd})
	}
	f.endChild(&o, at)
}

// chooseCards chooses the items among the children of an element that may be cards: those that have a class in
// common with enough of the others, and the same name. It reports whether there are any.
func (f *itemFinder) chooseCards(of openBox) (found bool) {
	if of.cards < minSiblings {
		return false
	}
	last := of.lastCard
	f.classes = f.classes[:0]
	for i := last; i != none; i = f.boxes[i].previous {
		if b := &f.boxes[i]; b.start < b.end {
			f.classes = append(f.classes, b.looks[:]...)
		}
	}
	slices.Sort(f.classes)
	for i := last; i != none; i = f.boxes[i].previous {
		b := &f.boxes[i]
		most, look := 0, uint32(0)
		for _, l := range b.looks {
			if l == 0 {
				break
			}
			from, _ := slices.BinarySearch(f.classes, l)
			to, _ := slices.BinarySearch(f.classes, l+1)
			if to-from > most {
				most, look = to-from, l
			}
		}
		if most >= minSiblings && b.start < b.end {
			b.isItem, found = true, true
			b.list = mix(b.list, look)
		}
	}
	return found
}

// link notes a link. It says something of the item in which it stands if it begins a block, or stands in a heading.
func (f *itemFinder) link(target uint32, at int, beginsBlock bool) {
	if target != 0 && len(f.events) < maxEvents && (beginsBlock || f.headings > 0) {
		f.events = append(f.events, event{int32(at), int32(len(f.links)), eventLink})
		f.links = append(f.links, link{target, f.headings > 0})
		f.noteLead(target, at)
	}
}

// beginLink notes an a element that begins outside of a block: it may be a card.
func (f *itemFinder) beginLink(el *element, at int) {
	if f.inLink = len(f.events) < maxEvents; f.inLink {
		f.linked, f.parent = int32(len(f.boxes)), f.parentBox().id
		f.events = append(f.events, event{int32(at), f.linked, eventStart})
		f.addBox(box{start: int32(at), end: int32(at), list: uint32(el.atom), looks: el.looks(), outer: none, listAt: none}, true)
	}
}

// endLink notes the end of an a element. It is no card if it ends within a block, or elsewhere than it began.
func (f *itemFinder) endLink(at int, inBlock bool) {
	if f.inLink && f.parentBox().id == f.parent && !inBlock {
		f.boxes[f.linked].end = int32(at)
		f.events = append(f.events, event{int32(at), f.linked, eventEnd})
	}
	f.inLink = false
}

// identity is what an item may be known by.
type identity struct {
	target uint32
	box    int32
	rank   int32 // those of a lower rank count first
}

// Ranks of identities. The number of the identity is added to them.
const (
	rankHeading = 0
	rankBlock   = 1 << 28
	rankID      = 2 << 28
)

// keys returns the key of each box that is an item: its first identity that no other item has.
func (f *itemFinder) keys() []pipeline.Key {
	all := f.identities()
	slices.SortFunc(all, func(a, b identity) int {
		if a.target != b.target {
			return compare(a.target, b.target)
		}
		return compare(a.box, b.box)
	})
	best := make([]int32, len(f.boxes))
	keys := make([]pipeline.Key, len(f.boxes))
	for i := 0; i < len(all); {
		first := i
		for i < len(all) && all[i].target == all[first].target {
			i++
		}
		if all[first].box != all[i-1].box {
			continue
		}
		rank := all[first].rank
		for _, id := range all[first:i] {
			rank = min(rank, id.rank)
		}
		if b := all[first].box; keys[b] == 0 || rank < best[b] {
			best[b] = rank
			keys[b] = pipeline.KeyOf(uint64(f.boxes[b].list), uint64(all[first].target))
		}
	}
	return keys
}

// identities returns the identities of all items. A link belongs to the innermost item in which it stands, or
// to one directly in it.
func (f *itemFinder) identities() (all []identity) {
	give := func(b int32, target uint32, rank int32) {
		if n := &f.boxes[b].identities; *n < maxIdentities {
			*n++
			all = append(all, identity{target, b, rank + int32(len(all))})
		}
	}
	var open []int32
	pending := none // the event of the last link, which may stand around an item
	for i, e := range f.events {
		if e.kind == eventList || e.kind != eventLink && !f.boxes[e.of].isItem {
			continue
		}
		if pending != none {
			l, around := f.events[pending], int32(none)
			if e.kind == eventStart && e.at == l.at {
				around = e.of
			} else if len(open) > 0 {
				around = open[len(open)-1]
			}
			if around != none {
				rank := int32(rankBlock)
				if f.links[l.of].inHeading {
					rank = rankHeading
				}
				give(around, f.links[l.of].target, rank)
			}
			pending = none
		}
		switch e.kind {
		case eventLink:
			pending = i
		case eventStart:
			open = append(open, e.of)
			if id := f.boxes[e.of].id; id != 0 {
				give(e.of, mix(id, rankID), rankID)
			}
		case eventEnd:
			open = open[:len(open)-1]
		}
	}
	return all
}

// mark returns content, the text of body, behind before, with the marks of its items, and the keys of these.
func (f *itemFinder) mark(before string, content []byte) (string, []pipeline.Key) {
	f.passOverParagraphs(f.children)
	f.chooseCards(f.root)
	f.chooseRecords(f.children, f.root.look)
	f.addRecords()
	items := false
	for i := range f.boxes {
		b := &f.boxes[i]
		b.isItem = b.isItem && b.start < b.end
		items = items || b.isItem
	}
	if !items {
		return before + string(content), nil
	}
	byBox := f.keys()
	for i := range f.boxes {
		if b := &f.boxes[i]; b.isItem && b.outer != none {
			outer := &f.boxes[b.outer]
			if outer.inner++; byBox[i] != 0 {
				outer.keyed++
			}
		}
	}
	count := 0
	for i := range f.boxes {
		b := &f.boxes[i]
		if b.isItem && b.bare && byBox[i] == 0 && bytes.IndexByte(content[b.start:b.end-1], pipeline.BlockEnd) < 0 {
			b.isItem = false // a paragraph
		}
		if b.start == b.listAt && b.isSplit(byBox[i]) {
			b.isItem = false // it has no words of its own
		}
		if b.isItem {
			count++
		}
	}
	keys, known := make([]pipeline.Key, 0, count), false
	var out strings.Builder
	out.Grow(len(before) + len(content) + 2*count)
	out.WriteString(before)
	at := int32(0)
	for _, e := range f.events {
		if e.kind == eventLink || !f.boxes[e.of].isItem {
			continue
		}
		if split := f.boxes[e.of].isSplit(byBox[e.of]); split && e.kind == eventEnd || !split && e.kind == eventList {
			continue
		}
		out.Write(content[at:e.at])
		at = e.at
		if e.kind != eventStart {
			out.WriteByte(pipeline.ItemEnd)
			continue
		}
		out.WriteByte(pipeline.ItemStart)
		keys = append(keys, byBox[e.of])
		known = known || byBox[e.of] != 0
	}
	out.Write(content[at:])
	if !known {
		keys = nil
	}
	return out.String(), keys
}

// reset makes f ready for another page.
func (f *itemFinder) reset() {
	*f = itemFinder{open: f.open[:0], boxes: f.boxes[:0], events: f.events[:0], links: f.links[:0], classes: f.classes, children: f.children[:0], leads: f.leads, records: f.records[:0]}
}

func compare[T int32 | uint32](a, b T) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}
