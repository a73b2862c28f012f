package diff

import (
	"encoding/binary"
	"strings"

	"github.com/vokter/vokter/pipeline/text"
)

// maxProperty is how many tokens an item has that is known by its title, such as a property and its value. Longer
// items may have the title of another one.
const maxProperty = 12

// several is the place of a title that more than one item has.
const several = -2

// joinSameTitles joins short units by their titles: the first block of an item, or the label of a line such as "Room 3:
// free". A room that was free and is taken is the same room, although another one is free now. A title counts if one
// unit of each text has it. A mere number, such as "3" or "rank: 3", may be a rank: it counts if no word went from one
// such title to another.
func (r *relation) joinSameTitles(p unitPairs) {
	olds := r.findTitles(r.comparison.old, r.old, func(u int) bool { return p.newUnit[u] < 0 })
	paired := make([]bool, len(r.comparison.new.Units))
	for _, u := range p.newUnit {
		if u >= 0 {
			paired[u] = true
		}
	}
	news := r.findTitles(r.comparison.new, r.new, func(u int) bool { return !paired[u] })
	var ranks [][2]int
	for title, i := range olds {
		j, ok := news[title]
		if !ok || i < 0 || j < 0 {
			continue
		}
		if !r.mayBeNamesakes(i, j) || !r.haveOneShape(&r.old[i], &r.new[j]) {
			continue
		}
		if mayBeRank(r.comparison.old, r.old[i].Unit) {
			ranks = append(ranks, [2]int{i, j})
		} else {
			r.joinTitled(i, j)
		}
	}
	if r.haveMoved(ranks) {
		return
	}
	for _, at := range ranks {
		r.joinTitled(at[0], at[1])
	}
}

// mayBeNamesakes reports whether what names units i and j may count: they belong to no other unit, and no keys do it
// better.
func (r *relation) mayBeNamesakes(i, j int) bool {
	a, b := &r.old[i], &r.new[j]
	isKeyed := haveOneList(a.Unit, b.Unit) && r.trusted[a.Key.List()] != untrusted
	return !isKeyed && !r.groups.joined[i] && !r.groups.joined[len(r.old)+j]
}

func (r *relation) joinTitled(i, j int) {
	r.join(i, j)
	r.old[i].titled, r.new[j].titled = true, true
}

// findTitles returns the candidates of d by the titles that tell them from all other units of d.
func (r *relation) findTitles(d *text.Doc, all []candidate, isCandidate func(unit int) bool) map[string]int {
	titles := make(map[string]int)
	next := 0
	var title []byte
units:
	for u, unit := range d.Units {
		place := several
		if isCandidate(u) {
			place = next
			next++
		}
		if place >= 0 && len(all[place].bag) > maxProperty {
			continue
		}
		title = title[:0]
		for t := d.Blocks[unit.FirstBlock].First; t < titleEnd(d, unit); t++ {
			symbol, ok := r.symbols.knownToken(d.Text(t))
			if !ok {
				continue units // no candidate has it
			}
			title = binary.LittleEndian.AppendUint32(title, uint32(symbol))
		}
		if len(title) == 0 {
			continue
		}
		if _, ok := titles[string(title)]; ok {
			place = several
		}
		titles[string(title)] = place
	}
	return titles
}

// titleEnd returns the token behind the title of unit, or 0 if it has none.
func titleEnd(d *text.Doc, unit text.Unit) int {
	first := d.Blocks[unit.FirstBlock]
	switch n := unit.LastBlock - unit.FirstBlock; {
	case n > 1 && unit.Item:
		return first.Last
	case n > 1 || first.Last-first.First > maxProperty:
		return 0
	}
	for t := first.First + 1; t < first.Last; t++ {
		if strings.HasPrefix(d.Content[d.Tokens[t-1].End:d.Tokens[t].Start], ": ") {
			return t
		}
	}
	return 0
}

// haveOneShape reports whether two units with the same title are lines or properties, of which all of the value may
// change, or have another block in common.
func (r *relation) haveOneShape(a, b *candidate) bool {
	n := a.LastBlock - a.FirstBlock
	if n != b.LastBlock-b.FirstBlock {
		return false
	}
	old, new := r.comparison.old, r.comparison.new
	for i := 1; i < n; i++ {
		x, y := old.Blocks[a.FirstBlock+i], new.Blocks[b.FirstBlock+i]
		equal := x.Last-x.First == y.Last-y.First
		for t := 0; equal && t < x.Last-x.First; t++ {
			equal = r.symbols.fold(old.Text(x.First+t)) == r.symbols.fold(new.Text(y.First+t))
		}
		if equal {
			return true
		}
	}
	return n <= 2
}

// mayBeRank reports whether the title of unit is a whole number, alone or behind a label.
func mayBeRank(d *text.Doc, unit text.Unit) bool {
	title := d.Content[d.Tokens[d.Blocks[unit.FirstBlock].First].Start:d.Tokens[titleEnd(d, unit)-1].End]
	if _, value, labelled := strings.Cut(title, ": "); labelled {
		title = value
	}
	return strings.Trim(title, "0123456789") == ""
}

// haveMoved reports whether a word that one unit of each text has, among pairs of units with the same title, went from
// one title to another.
func (r *relation) haveMoved(pairs [][2]int) bool {
	owner := make(map[int32]int)
	for n, at := range pairs {
		for x := range eachDistinct(r.old[at[0]].bag) {
			if r.weights[x] == fullWeight {
				owner[x] = n
			}
		}
	}
	for n, at := range pairs {
		for x := range eachDistinct(r.new[at[1]].bag) {
			if of, ok := owner[x]; ok && of != n {
				return true
			}
		}
	}
	return false
}
