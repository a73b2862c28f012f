package html

import (
	"cmp"
	"slices"

	"golang.org/x/net/html/atom"
)

// record is an item that no element holds: children of one parent, of which the first is a link, a heading or a
// paragraph that begins with one, such as a title. The parent has at least minSiblings such leads that look alike.
type record struct {
	start, end int32 // as those of a box
	// first and last are where it begins and ends among the events: before the one with this number.
	first, last int32
	list        uint32
	box         int32
}

// child is a child of an open element that ends blocks and is no item by its name.
type child struct {
	start, end  int32
	first, last int32
	look        uint32
	target      uint32 // of the link with which it begins
	box         int32
	leaf        bool // no element in it ends a block
	items       bool // it holds items
}

// maxLeads is how many kinds of leads of one parent are looked at.
const maxLeads = 4

// beginChild notes that el begins, and returns its index in f.children.
func (f *itemFinder) beginChild(el *element, at int) int32 {
	if n := len(f.open); n > 0 && f.open[n-1].child != none {
		f.children[f.open[n-1].child].leaf = false
	}
	if el.kind&item != 0 || el.atom == atom.Article {
		f.noteItems()
		return none
	}
	f.children = append(f.children, child{start: int32(at), first: int32(len(f.events)), look: el.look(), box: none, leaf: true})
	return int32(len(f.children) - 1)
}

// noteLead notes a link to target with which a child begins.
func (f *itemFinder) noteLead(target uint32, at int) {
	if o := f.parentBox(); len(f.open) > 0 && o.child != none && f.children[o.child].start == int32(at) {
		f.children[o.child].target = target
	}
}

// endChild notes the end of an element, and chooses the cards and the records in it.
func (f *itemFinder) endChild(o *openBox, at int) {
	f.passOverParagraphs(f.children[o.within:])
	if f.chooseCards(*o) && o.child != none {
		f.children[o.child].items = true
	}
	f.chooseRecords(f.children[o.within:], o.look)
	f.children = f.children[:o.within]
	if o.child != none {
		c := &f.children[o.child]
		c.end, c.last = int32(at), int32(len(f.events))
		if c.items {
			f.noteItems()
		}
	}
}

// passOverParagraphs takes those of the children for no cards that have no class, no other element that ends a block,
// and begin with no link: paragraphs, which are parts of a card if one of them begins with a link.
func (f *itemFinder) passOverParagraphs(of []child) {
	for _, c := range of {
		if c.leaf && c.target == 0 && c.box != none && f.boxes[c.box].bare && f.boxes[c.box].id == 0 {
			f.boxes[c.box].looks[0] = 0
		}
	}
}

// noteItems notes that the innermost open element holds items.
func (f *itemFinder) noteItems() {
	if n := len(f.open); n > 0 && f.open[n-1].child != none {
		f.children[f.open[n-1].child].items = true
	}
}

// leadLook returns the look of the most leads among the children of one parent, 0 where too few look alike.
func leadLook(of []child) uint32 {
	var looks [maxLeads]uint32
	var counts [maxLeads]int
	last := uint32(0)
	for i := range of {
		c := &of[i]
		if !c.isLead(c.look) || c.target == last {
			continue
		}
		last = c.target
		for k := range looks {
			if counts[k] == 0 || looks[k] == c.look {
				looks[k] = c.look
				counts[k]++
				break
			}
		}
	}
	best := 0
	for k := range counts {
		if counts[k] > counts[best] {
			best = k
		}
	}
	if counts[best] < minSiblings {
		return 0
	}
	return looks[best]
}

// chooseRecords chooses the records among the children of an element. At least half of them must have more than the
// lead, or none. A record ends before a child that holds items. The last one ends before a child that no other record
// has, and is no longer than the longest of the others.
func (f *itemFinder) chooseRecords(of []child, parent uint32) {
	look := leadLook(of)
	if look == 0 {
		return
	}
	leads, target := f.leads[:0], uint32(0)
	for i := range of {
		if c := &of[i]; c.isLead(look) && c.target != target {
			leads, target = append(leads, int32(i)), c.target
		}
	}
	f.leads = leads
	before, longer, longest := len(f.records), 0, 0
	for k, i := range leads {
		last := k == len(leads)-1
		end := len(of)
		if !last {
			end = int(leads[k+1])
		}
		r, size := record{list: mix(look, parent), start: of[i].start, first: of[i].first}, 0
		for j := int(i); j < end; j++ {
			c := &of[j]
			if c.start == c.end {
				continue
			}
			if c.items || last && (size == longest || j > int(i) && !hasLook(of[leads[0]+1:i], c.look)) {
				break
			}
			r.end, r.last = c.end, c.last
			size++
		}
		if longest = max(longest, size); size > 1 {
			longer++
		}
		f.records = append(f.records, r)
	}
	if b := of[leads[0]].box; longer > 0 && 2*longer < len(leads) || longer == 0 && b != none && f.boxes[b].isItem {
		f.records = f.records[:before]
	}
	left := f.records[before:]
	for _, c := range of {
		for len(left) > 0 && left[0].end < c.end {
			left = left[1:]
		}
		if len(left) > 0 && c.start >= left[0].start && c.leaf && c.box != none {
			f.boxes[c.box].isItem = false // a part of the record
		}
	}
}

// isLead reports whether c may begin a record, if records begin with children of this look.
func (c *child) isLead(look uint32) bool {
	return c.look == look && c.target != 0 && c.leaf && c.start < c.end
}

func hasLook(of []child, look uint32) bool {
	return slices.ContainsFunc(of, func(c child) bool { return c.look == look })
}

// addRecords adds the records to the boxes, and their beginnings and ends to the events.
func (f *itemFinder) addRecords() {
	if len(f.records) == 0 {
		return
	}
	slices.SortFunc(f.records, func(a, b record) int { return cmp.Or(compare(a.first, b.first), compare(b.last, a.last)) })
	events := make([]event, 0, len(f.events)+2*len(f.records))
	var open []record
	left := f.records
	for i := int32(0); i <= int32(len(f.events)); i++ {
		for n := len(open) - 1; n >= 0 && open[n].last == i; n-- {
			events = append(events, event{open[n].end, open[n].box, eventEnd})
			open = open[:n]
		}
		for ; len(left) > 0 && left[0].first == i; left = left[1:] {
			r := left[0]
			r.box = int32(len(f.boxes))
			f.boxes = append(f.boxes, box{start: r.start, end: r.end, list: r.list, isItem: true, outer: none, listAt: none})
			events = append(events, event{r.start, r.box, eventStart})
			open = append(open, r)
		}
		if int(i) < len(f.events) {
			events = append(events, f.events[i])
		}
	}
	f.events = events
}
