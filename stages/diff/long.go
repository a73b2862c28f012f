package diff

import (
	"cmp"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// longItem returns the long item in which block b of d is.
func longItem(d *text.Doc, b int) (it text.Unit, ok bool) {
	i, found := slices.BinarySearchFunc(d.LongItems, b, func(u text.Unit, b int) int { return cmp.Compare(u.FirstBlock, b) })
	if !found {
		i--
	}
	if i < 0 || b >= d.LongItems[i].LastBlock {
		return text.Unit{}, false
	}
	return d.LongItems[i], true
}

// itemAround returns the item that all of the units of d are, or are in: if they are in one long item, that. It reports
// false if some are in none. Of several items it returns the first.
func itemAround(d *text.Doc, units []int) (it text.Unit, ok bool) {
	for k, u := range units {
		unit := d.Units[u]
		around, inLong := longItem(d, unit.FirstBlock)
		if !inLong && !unit.Item {
			return text.Unit{}, false
		}
		switch {
		case k > 0:
		case inLong && (!unit.Item || len(units) > 1):
			it = around
		default:
			it = unit
		}
	}
	return it, true
}

// mostlyNew is the part, in quarters, of a long item's tokens that only one text must have for the item to be new or
// gone.
const mostlyNew = 3

// longParts says what became of the long items in which units without a pair are. A unit is known by its number among
// those of both texts, the old ones first.
type longParts struct {
	whole []int  // the first unit of the item, if only one text has that; or -1
	part  []bool // the unit is of one text only, its item is in both
}

// findLongParts finds the long items that are new or gone: those of which the other text has nearly nothing, or not the
// key. f says which of the units belong together.
func (c *comparison) findLongParts(old, new []int, f *unionFind) longParts {
	l := longParts{slices.Repeat([]int{-1}, len(old)+len(new)), make([]bool, len(old)+len(new))}
	c.noteLongItems(&l, c.old, c.new, old, f, 0)
	c.noteLongItems(&l, c.new, c.old, new, f, len(old))
	// What belongs to a unit of another item stays with it.
	stays := make(map[int]bool)
	for e, of := range l.whole {
		if of < 0 {
			stays[f.find(e)] = true
		}
	}
	for e := range l.whole {
		if stays[f.find(e)] {
			l.whole[e] = -1
		}
	}
	return l
}

// noteLongItems notes in l the long items of d in which the units are, the first of which has the number offset.
func (c *comparison) noteLongItems(l *longParts, d, other *text.Doc, units []int, f *unionFind, offset int) {
	for i := 0; i < len(units) && len(d.LongItems) > 0; {
		it, ok := longItem(d, d.Units[units[i]].FirstBlock)
		if !ok {
			i++
			continue
		}
		first, free := i, 0
		for ; i < len(units) && d.Units[units[i]].FirstBlock < it.LastBlock; i++ {
			if !f.joined[offset+i] {
				free += countUnitTokens(d, units[i])
			}
		}
		whole := 4*free >= mostlyNew*(d.Blocks[it.LastBlock-1].Last-d.Blocks[it.FirstBlock].First) || c.isForeign(it.Key, other)
		for k := first; k < i; k++ {
			if whole {
				l.whole[offset+k] = offset + first
			} else {
				l.part[offset+k] = !f.joined[offset+k] && !d.Units[units[k]].Item
			}
		}
	}
}

// isForeign reports whether k is a trusted key that no item of d has.
func (c *comparison) isForeign(k pipeline.Key, d *text.Doc) bool {
	hasKey := func(u text.Unit) bool { return u.Key == k }
	return k != 0 && c.trusted[k.List()] == trustedKeys && !slices.ContainsFunc(d.Units, hasKey) && !slices.ContainsFunc(d.LongItems, hasKey)
}
