package diff

import (
	"slices"

	"github.com/vokter/vokter/pipeline/text"
)

// Bounds of what is read as records: items that no element holds, each some blocks one after the other, such as a
// title, a line with a date and a sentence.
const (
	minRecords = 3 // in one of the texts
	minPeriod  = 2 // blocks of a record
	maxPeriod  = 8
	// minEvidence is how often words must come again at the distance of the records.
	minEvidence = 6
	// fewRecords are too few where they are not half of their run.
	fewRecords = 4
	// maxMarker is how many tokens a block may have to show where records are: prose has more.
	maxMarker = text.MaxItem / 2
	// maxRun is how many blocks of a run are looked at.
	maxRun = 20_000
)

// grid says where something stands in a text: in n units, period units apart.
type grid struct{ first, period, n int }

// at returns its i-th unit.
func (g grid) at(i int) int { return g.first + i*g.period }

// plainRun is a run of units that are no items nor parts of one. Its grids are those of the words that stand in short
// blocks.
type plainRun struct {
	doc        *text.Doc
	start, end int
	grids      map[uint64]grid
}

// withRecords returns both texts with their records as items. It returns the same texts where they have none.
func withRecords(old, new *text.Doc) (*text.Doc, *text.Doc) {
	var inOld, inNew []grid
	news := plainRuns(new)
	for _, a := range plainRuns(old) {
		best, records := -1, 0
		for j := range news {
			if n := chooseMarker(a.sharedGrids(&news[j])).countRecords(); n > records {
				best, records = j, n
			}
		}
		if best < 0 {
			continue
		}
		if found, ok := findRecords(&a, &news[best]); ok {
			inOld, inNew = append(inOld, found.old), append(inNew, found.new)
			news = slices.Delete(news, best, best+1)
		}
	}
	if len(inOld) == 0 {
		return old, new
	}
	slices.SortFunc(inNew, func(a, b grid) int { return a.first - b.first })
	return groupRecords(old, inOld), groupRecords(new, inNew)
}

// plainRuns returns the runs of units of d that are no items nor parts of one with a key.
func plainRuns(d *text.Doc) (runs []plainRun) {
	for u := 0; u < len(d.Units); u++ {
		start := u
		for u < len(d.Units) && !d.Units[u].Item && d.Units[u].Key == 0 && u-start < maxRun {
			u++
		}
		if u-start >= minPeriod {
			r := plainRun{doc: d, start: start, end: u}
			r.findGrids()
			runs = append(runs, r)
		}
	}
	return runs
}

// findGrids finds the words that come once, or again at one distance.
func (r *plainRun) findGrids() {
	r.grids = make(map[uint64]grid)
	const irregular = -1
	for u := r.start; u < r.end; u++ {
		b := r.doc.Blocks[r.doc.Units[u].FirstBlock]
		if b.Last-b.First > maxMarker {
			continue
		}
		for look := range eachLook(r.doc, b) {
			g, seen := r.grids[look]
			switch {
			case !seen:
				g = grid{first: u, n: 1}
			case g.n == irregular || g.at(g.n-1) == u:
				continue
			case g.n == 1 && u-g.first >= minPeriod && u-g.first <= maxPeriod:
				g = grid{g.first, u - g.first, 2}
			case g.n > 1 && g.at(g.n) == u:
				g.n++
			default:
				g.n = irregular
			}
			r.grids[look] = g
		}
	}
	for look, g := range r.grids {
		if g.n == irregular {
			delete(r.grids, look)
		}
	}
}

// eachLook iterates over what the tokens of a block look like, as hashes: without case, all digits alike. The first
// and the last token have a look of their own besides.
func eachLook(d *text.Doc, b text.Block) func(yield func(uint64) bool) {
	const offset64, prime64 = 14695981039346656037, 1099511628211
	return func(yield func(uint64) bool) {
		for t := b.First; t < b.Last; t++ {
			h := uint64(offset64)
			token := d.Text(t)
			for i := range len(token) {
				c := token[i]
				switch {
				case c >= '0' && c <= '9':
					c = '0'
				case c >= 'A' && c <= 'Z':
					c |= 0x20
				}
				h = (h ^ uint64(c)) * prime64
			}
			if !yield(h) || t == b.First && !yield((h^1)*prime64) || t == b.Last-1 && !yield((h^2)*prime64) {
				return
			}
		}
	}
}

// gridPair is where something stands in both texts.
type gridPair struct{ old, new grid }

func (p gridPair) countRecords() int { return p.old.n + p.new.n }

// places orders pairs.
func (p gridPair) places() [6]int {
	return [6]int{p.old.first, p.new.first, p.old.period, p.new.period, p.old.n, p.new.n}
}

// sharedGrids returns where the words of both runs stand that are at one distance in both, and how many words do.
func (r *plainRun) sharedGrids(new *plainRun) map[gridPair]int {
	words := make(map[gridPair]int)
	for look, g := range r.grids {
		k, ok := new.grids[look]
		if !ok || max(g.n, k.n) < minRecords || g.n > 1 && k.n > 1 && g.period != k.period {
			continue
		}
		g.period = max(g.period, k.period)
		k.period = g.period
		words[gridPair{g, k}]++
	}
	return words
}

// chooseMarker returns where most records are, and of several such places that of most words.
func chooseMarker(words map[gridPair]int) (marker gridPair) {
	for p, n := range words {
		a, b := p.places(), marker.places()
		x, y := [2]int{p.countRecords(), n}, [2]int{marker.countRecords(), words[marker]}
		if c := slices.Compare(x[:], y[:]); c > 0 || c == 0 && slices.Compare(a[:], b[:]) < 0 {
			marker = p
		}
	}
	return marker
}

// findRecords finds the records of two runs. Each has the marker at one place; of the places where it may be, that one
// counts at which most of the words that mark records lie in the same record, then most records are in both texts, then
// the blocks around all of them are the same, then the marker is last.
func findRecords(a, b *plainRun) (found gridPair, ok bool) {
	words := a.sharedGrids(b)
	marker := chooseMarker(words)
	var best [4]int
	for before := range marker.old.period {
		p := marker
		p.old.first -= before
		p.new.first -= before
		if !a.holds(p.old) || !b.holds(p.new) {
			continue
		}
		marking := 0
		for q, n := range words {
			at := q.old.first - p.old.first
			same := q.old.period == p.old.period && q.old.n == p.old.n && q.new.n == p.new.n
			if same && at >= 0 && at < p.old.period && q.new.first-p.new.first == at {
				marking += n
			}
		}
		if marking*(max(p.old.n, p.new.n)-1) < minEvidence || marking*min(p.old.n, p.new.n) < 2 {
			continue
		}
		score := [4]int{marking, countEqualRecords(a, b, p), countEqualEnds(a, b, p), before + 1}
		if slices.Compare(score[:], best[:]) > 0 {
			best, found, ok = score, p, true
		}
	}
	return found, ok && a.mayBeRecords(found.old) && b.mayBeRecords(found.new)
}

// holds reports whether the records are within r.
func (r *plainRun) holds(records grid) bool {
	return records.first >= r.start && records.at(records.n) <= r.end
}

// mayBeRecords reports whether most of the records are short enough for a unit, and whether they are many, or much of
// r.
func (r *plainRun) mayBeRecords(records grid) bool {
	short := 0
	for i := range records.n {
		if countRecordTokens(r.doc, records, i) <= text.MaxItem {
			short++
		}
	}
	return 4*short >= 3*records.n && (records.n > fewRecords || 2*records.n*records.period >= r.end-r.start)
}

// record returns the i-th record as a unit of d.
func record(d *text.Doc, records grid, i int) text.Unit {
	first, last := d.Units[records.at(i)], d.Units[records.at(i+1)-1]
	return text.Unit{FirstBlock: first.FirstBlock, LastBlock: last.LastBlock, Item: true}
}

func countRecordTokens(d *text.Doc, records grid, i int) int {
	u := record(d, records, i)
	return d.Blocks[u.LastBlock-1].Last - d.Blocks[u.FirstBlock].First
}

func recordText(d *text.Doc, records grid, i int) string {
	u := record(d, records, i)
	return d.Content[d.Blocks[u.FirstBlock].Start:d.Blocks[u.LastBlock-1].End]
}

// countEqualRecords counts the records that both texts have.
func countEqualRecords(a, b *plainRun, p gridPair) (n int) {
	left := make(map[string]int)
	for i := range p.old.n {
		left[recordText(a.doc, p.old, i)]++
	}
	for i := range p.new.n {
		if s := recordText(b.doc, p.new, i); left[s] > 0 {
			left[s]--
			n++
		}
	}
	return n
}

// countEqualEnds counts the ends of the records, before the first and behind the last, where both texts go on alike.
func countEqualEnds(a, b *plainRun, p gridPair) (n int) {
	isAlike := func(o, u int) bool {
		inOld, inNew := o >= a.start && o < a.end, u >= b.start && u < b.end
		return inOld == inNew && (!inOld || unitText(a.doc, o) == unitText(b.doc, u))
	}
	for _, alike := range [2]bool{isAlike(p.old.first-1, p.new.first-1), isAlike(p.old.at(p.old.n), p.new.at(p.new.n))} {
		if alike {
			n++
		}
	}
	return n
}

// groupRecords returns d with the short ones of the records as units, and the others as long items. The records are in
// order.
func groupRecords(d *text.Doc, all []grid) *text.Doc {
	out := &text.Doc{Content: d.Content, Tokens: d.Tokens, Blocks: slices.Clone(d.Blocks), Units: make([]text.Unit, 0, len(d.Units)), LongItems: slices.Clone(d.LongItems)}
	add := func(u text.Unit) {
		for b := u.FirstBlock; b < u.LastBlock; b++ {
			out.Blocks[b].Unit = len(out.Units)
		}
		out.Units = append(out.Units, u)
	}
	u := 0
	addUntil := func(end int) {
		for ; u < end; u++ {
			add(d.Units[u])
		}
	}
	for _, records := range all {
		for i := range records.n {
			addUntil(records.at(i))
			it := record(d, records, i)
			if countRecordTokens(d, records, i) > text.MaxItem {
				out.LongItems = append(out.LongItems, it)
				continue
			}
			add(it)
			u = records.at(i + 1)
		}
	}
	addUntil(len(d.Units))
	slices.SortFunc(out.LongItems, func(a, b text.Unit) int { return a.FirstBlock - b.FirstBlock })
	return out
}
