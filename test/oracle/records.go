package oracle

import (
	"slices"
	"strings"
)

// Bounds of records, as the documentation names them.
const (
	fewestRecords  = 3
	leastEvidence  = 6
	fewRecords     = 4
	shortestRecord = 2 // in blocks
	longestRecord  = 8
	longestMarking = 20 // in tokens
)

// places are units at one distance from each other: the first, the distance, and how many.
type places struct{ first, distance, n int }

func (p places) at(i int) int { return p.first + i*p.distance }

// run is a run of units that are no items: us[start:end].
type run struct {
	page       Page
	us         []unit
	start, end int
}

func runsOf(p Page, us []unit) (rs []run) {
	isPlain := func(i int) bool { return i < len(us) && !us[i].isItem && us[i].key == (Key{}) }
	for i := range us {
		if isPlain(i) && (i == 0 || !isPlain(i-1)) {
			r := run{p, us, i, i}
			for isPlain(r.end) {
				r.end++
			}
			if r.end-r.start > 1 {
				rs = append(rs, r)
			}
		}
	}
	return rs
}

// looksOf returns what the words of u look like.
func looksOf(u unit) (ls []string) {
	ts := u.tokens[:u.length] // a border follows
	for i, t := range ts {
		l := strings.Map(func(r rune) rune {
			switch {
			case r >= '0' && r <= '9':
				return '0'
			case r >= 'A' && r <= 'Z':
				return r + 'a' - 'A'
			}
			return r
		}, t.text)
		ls = append(ls, l)
		if i == 0 {
			ls = append(ls, l+" first")
		}
		if i == len(ts)-1 {
			ls = append(ls, l+" last")
		}
	}
	return ls
}

// regular returns where the words stand that are in one short block, or in several at one distance.
func (r run) regular() map[string]places {
	in := make(map[string][]int)
	for i := r.start; i < r.end; i++ {
		if r.us[i].length > longestMarking {
			continue
		}
		for _, l := range looksOf(r.us[i]) {
			if !slices.Contains(in[l], i) {
				in[l] = append(in[l], i)
			}
		}
	}
	found := make(map[string]places)
	for l, at := range in {
		p := places{at[0], 0, len(at)}
		if len(at) > 1 {
			p.distance = at[1] - at[0]
		}
		ok := len(at) == 1 || p.distance >= shortestRecord && p.distance <= longestRecord
		for i := range at {
			ok = ok && at[i] == p.at(i)
		}
		if ok {
			found[l] = p
		}
	}
	return found
}

// both are places in both versions.
type both [2]places

func (b both) count() int { return b[oldSide].n + b[newSide].n }

// marks returns the places of the words that show records, and how many do.
func marks(old, new run) map[both]int {
	count := make(map[both]int)
	news := new.regular()
	for l, p := range old.regular() {
		q, ok := news[l]
		if !ok || max(p.n, q.n) < fewestRecords || p.n > 1 && q.n > 1 && p.distance != q.distance {
			continue
		}
		p.distance = max(p.distance, q.distance)
		q.distance = p.distance
		count[both{p, q}]++
	}
	return count
}

// mark returns the places of most records, then of most words, then the first.
func mark(count map[both]int) (best both) {
	rank := func(b both) []int {
		o, n := b[oldSide], b[newSide]
		return []int{-b.count(), -count[b], o.first, n.first, o.distance, n.distance, o.n, n.n}
	}
	for b := range count {
		if best == (both{}) || slices.Compare(rank(b), rank(best)) < 0 {
			best = b
		}
	}
	return best
}

// findRecords returns where the records of two runs are.
func findRecords(old, new run) (found both, ok bool) {
	count := marks(old, new)
	marker := mark(count)
	rs := [2]run{old, new}
	best := []int{}
	for before := range marker[oldSide].distance {
		b := marker
		fits, equal, ends := true, 0, 0
		for s := range b {
			b[s].first -= before
			fits = fits && b[s].first >= rs[s].start && b[s].at(b[s].n) <= rs[s].end
		}
		if !fits {
			continue
		}
		words := 0
		for c, n := range count {
			for at := range b[oldSide].distance {
				c2 := b
				c2[oldSide].first += at
				c2[newSide].first += at
				if c == c2 {
					words += n
				}
			}
		}
		o, n := b[oldSide], b[newSide]
		if words*(max(o.n, n.n)-1) < leastEvidence || words*min(o.n, n.n) < 2 {
			continue
		}
		left := map[string]int{}
		for i := range o.n {
			left[old.text(o.at(i), o.at(i+1))]++
		}
		for i := range n.n {
			if t := new.text(n.at(i), n.at(i+1)); left[t] > 0 {
				left[t]--
				equal++
			}
		}
		for _, e := range [][2]int{{o.first - 1, n.first - 1}, {o.at(o.n), n.at(n.n)}} {
			if old.textAt(e[oldSide]) == new.textAt(e[newSide]) {
				ends++
			}
		}
		if score := []int{words, equal, ends, before}; slices.Compare(score, best) > 0 {
			best, found, ok = score, b, true
		}
	}
	return found, ok && old.admits(found[oldSide]) && new.admits(found[newSide])
}

// text is that of the units [from, to).
func (r run) text(from, to int) string {
	var ts []string
	last := blockIndexes(r.us[to-1].tokens)[0]
	for i := blockIndexes(r.us[from].tokens)[0]; i <= last; i++ {
		ts = append(ts, r.page[i].Text)
	}
	return strings.Join(ts, "\n")
}

// textAt is that of unit i, "" outside of the run.
func (r run) textAt(i int) string {
	if i < r.start || i >= r.end {
		return ""
	}
	return r.text(i, i+1)
}

// length counts the tokens of record i.
func (r run) length(p places, i int) (n int) {
	for _, u := range r.us[p.at(i):p.at(i+1)] {
		n += u.length
	}
	return n
}

// admits reports whether p may be records of r: enough of them are short, and they are many or half of it.
func (r run) admits(p places) bool {
	short := 0
	for i := range p.n {
		if r.length(p, i) <= longestItem {
			short++
		}
	}
	return 4*short >= 3*p.n && (p.n > fewRecords || 2*p.n*p.distance >= r.end-r.start)
}

// joinRecords makes the short records of both pages units, and returns the long ones.
func joinRecords(pages [2]Page, us [2][]unit) (out [2][]unit, long [2][]longItem) {
	var begin [2]map[int]int // how many units begin a record, by the first one
	for s := range begin {
		begin[s] = make(map[int]int)
	}
	news := runsOf(pages[newSide], us[newSide])
	for _, old := range runsOf(pages[oldSide], us[oldSide]) {
		best, most := -1, 0
		for j, new := range news {
			if n := mark(marks(old, new)).count(); n > most {
				best, most = j, n
			}
		}
		if best < 0 {
			continue
		}
		new := news[best]
		found, ok := findRecords(old, new)
		if !ok {
			continue
		}
		news = slices.Delete(news, best, best+1)
		for s, r := range [2]run{old, new} {
			for i := range found[s].n {
				from, to := found[s].at(i), found[s].at(i+1)
				if n := r.length(found[s], i); n <= longestItem {
					begin[s][from] = found[s].distance
				} else {
					long[s] = append(long[s], longItem{first: us[s][from].tokens[0].block, last: us[s][to-1].tokens[0].block, words: n})
				}
			}
		}
	}
	for s := range us {
		for i := 0; i < len(us[s]); {
			u := us[s][i]
			n := max(begin[s][i], 1)
			for _, v := range us[s][i+1 : i+n] {
				u.tokens = append(slices.Clip(u.tokens), v.tokens...)
				u.folded, u.exact, u.length = u.folded+v.folded, u.exact+v.exact, u.length+v.length
			}
			u.isItem, u.index = u.isItem || n > 1, len(out[s])
			out[s] = append(out[s], u)
			i += n
		}
	}
	return out, long
}
