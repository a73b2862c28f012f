package diff

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// limits bound the work and the memory of one Diff. Work is counted in cells: pairs of symbols
// that a diff may have to compare. Myers' algorithm, as go-diff implements it, looks at no more
// than a small multiple of min(n·m, (n+m)·(d+1)) cells, for n and m symbols of which d are
// removed or added. A million cells took 2 to 5 ms when measured, and a real page of 9,000
// tokens that was completely rewritten needed 31 million for its grouping.
type limits struct {
	units     int64 // for the diff of the units
	grouping  int64 // for the diff of the unpaired units' tokens, and as much for each other way to compare them
	group     int64 // for the diff within one group
	allGroups int64 // for the diffs within all groups

	// blocks and tokens are how many blocks and tokens of both texts together may change before
	// the groups are coarse. Grouping takes some 1.5 KB for each block and 150 bytes for each
	// token, and the message with the change must not be too large for a transport.
	blocks, tokens int
}

var defaultLimits = limits{units: 64 << 20, grouping: 64 << 20, group: 16 << 20, allGroups: 64 << 20, blocks: 100_000, tokens: 1_000_000}

// aligner aligns sequences and counts the cells that it spends. It is not safe for
// concurrent use.
type aligner struct {
	cellsLeft  int64 // cells that may still be spent
	cellsSpent int64
	// seenA and seenB hold the last round in which each symbol was on that side. runeOf is the
	// rune of each symbol, valid if runeRound holds the current round.
	seenA, seenB []uint32
	runeOf       []rune
	runeRound    []uint32
	round        uint32
}

// align returns the runs that a and b have in common, in order, spending at most most cells. It
// reports whether they are those of a shortest diff. If that would be too much work, they are
// those of a diff that first compares longer pieces if coarse is set, and else only the common
// prefix and suffix.
func (w *aligner) align(a, b []int32, most int64, coarse bool) (kept []run, shortest bool) {
	pre := commonPrefix(a, b)
	suf := commonSuffix(a[pre:], b[pre:])
	endA, endB := len(a)-suf, len(b)-suf
	fa, fb, ia, ib := w.keepCommon(a[pre:endA], b[pre:endB])
	middle, shortest := w.alignCommon(fa, fb, most, coarse)

	add := func(r run) {
		if r.n == 0 {
			return
		}
		if k := len(kept) - 1; k >= 0 && kept[k].a+kept[k].n == r.a && kept[k].b+kept[k].n == r.b {
			kept[k].n += r.n
			return
		}
		kept = append(kept, r)
	}
	add(run{0, 0, pre})
	for _, r := range middle {
		for k := range r.n {
			add(run{pre + ia[r.a+k], pre + ib[r.b+k], 1})
		}
	}
	add(run{endA, endB, suf})
	return kept, shortest
}

// alignCommon is align for sequences in which every symbol is on both sides.
func (w *aligner) alignCommon(a, b []int32, most int64, coarse bool) ([]run, bool) {
	if len(a) == 0 || len(b) == 0 {
		return nil, true
	}
	if int64(len(a))*int64(len(b)) <= min(most, w.cellsLeft) {
		return w.alignShortest(a, b), true
	}
	if !coarse {
		return nil, false
	}
	kept := w.alignPieces(a, b, most)
	// A shortest diff has no more edits than this one, so it may be cheap after all.
	if maxCells(len(a), len(b), kept) <= min(most, w.cellsLeft) && min(len(a), len(b)) <= maxSymbols {
		return w.alignShortest(a, b), true
	}
	return kept, false
}

// alignShortest returns the runs that a shortest diff keeps, and counts its cells.
func (w *aligner) alignShortest(a, b []int32) []run {
	w.round++
	next := 0
	runes := func(s []int32) []rune {
		out := make([]rune, len(s))
		for i, x := range s {
			if w.runeRound[x] != w.round {
				w.runeRound[x], w.runeOf[x] = w.round, symbolRune(next)
				next++
			}
			out[i] = w.runeOf[x]
		}
		return out
	}
	kept := diffRunes(runes(a), runes(b))
	c := maxCells(len(a), len(b), kept)
	w.cellsLeft -= c
	w.cellsSpent += c
	return kept
}

// maxCells is the maximal cost of a diff of n and m symbols that keeps kept.
func maxCells(n, m int, kept []run) int64 {
	d := n + m
	for _, r := range kept {
		d -= 2 * r.n
	}
	return min(int64(n)*int64(m), int64(n+m)*int64(d+1))
}

// keepCommon drops the symbols that the other side lacks: no diff can keep them. It also returns
// the positions of the remaining ones.
func (w *aligner) keepCommon(a, b []int32) (fa, fb []int32, ia, ib []int) {
	w.round++
	w.markSeen(&w.seenA, a)
	w.markSeen(&w.seenB, b)
	pick := func(s []int32, other []uint32) (f []int32, at []int) {
		for i, x := range s {
			if int(x) < len(other) && other[x] == w.round {
				f, at = append(f, x), append(at, i)
			}
		}
		return f, at
	}
	fa, ia = pick(a, w.seenB)
	fb, ib = pick(b, w.seenA)
	return fa, fb, ia, ib
}

func (w *aligner) markSeen(seen *[]uint32, s []int32) {
	for _, x := range s {
		if n := int(x) + 1; n > len(*seen) {
			*seen = append(*seen, make([]uint32, n+n/2-len(*seen))...)
		}
		(*seen)[x] = w.round
	}
	if n := len(*seen); n > len(w.runeRound) {
		w.runeRound = append(w.runeRound, make([]uint32, n-len(w.runeRound))...)
		w.runeOf = append(w.runeOf, make([]rune, n-len(w.runeOf))...)
	}
}

func commonPrefix(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// A piece ends after a symbol that, with the one before it, hashes to a multiple of
// meanPieceLength, so that an edit moves only the cuts next to it. It has at most maxPieceLength
// symbols.
const (
	meanPieceLength = 32
	maxPieceLength  = 512
)

// alignPieces aligns a and b coarsely: equal pieces are kept, and what is between them is aligned by
// symbols if it is small enough. The cuts are only for speed: an edit may cross them.
func (w *aligner) alignPieces(a, b []int32, most int64) []run {
	ids := make(map[string]int32)
	sa, enda := cutPieces(a, ids)
	sb, endb := cutPieces(b, ids)
	equal, _ := w.align(sa, sb, most, false)

	var kept []run
	i, j := 0, 0 // what lies before is done
	between := func(toA, toB int) {
		part, _ := w.align(a[i:toA], b[j:toB], most, false)
		for _, r := range part {
			kept = append(kept, run{i + r.a, j + r.b, r.n})
		}
	}
	for _, r := range equal {
		fromA, fromB := enda[r.a], endb[r.b]
		between(fromA, fromB)
		n := enda[r.a+r.n] - fromA
		kept = append(kept, run{fromA, fromB, n})
		i, j = fromA+n, fromB+n
	}
	between(len(a), len(b))
	return kept
}

// cutPieces returns the pieces of s as symbols, and where each begins, followed by len(s).
func cutPieces(s []int32, ids map[string]int32) (symbols []int32, begin []int) {
	var key []byte
	begin = append(begin, 0)
	for i, x := range s {
		key = binary.LittleEndian.AppendUint32(key, uint32(x))
		h := uint32(x) * 0x9E3779B1
		if i > 0 {
			h ^= uint32(s[i-1]) * 0x85EBCA77
		}
		h ^= h >> 15
		if h*0x2C1B3C6D>>16%meanPieceLength != 0 && i+1-begin[len(begin)-1] < maxPieceLength && i+1 < len(s) {
			continue
		}
		id, ok := ids[string(key)]
		if !ok {
			id = int32(len(ids))
			ids[string(key)] = id
		}
		symbols, begin, key = append(symbols, id), append(begin, i+1), key[:0]
	}
	return symbols, begin
}

// go-diff compares runes and returns them in strings, so symbols are encoded as runes that
// survive this: no control characters, no surrogates, not U+FFFD.
const (
	firstRune     = 0xA0
	surrogates    = 0xD800
	surrogatesEnd = 0xE000
	maxSymbols    = utf8.MaxRune + 1 - firstRune - (surrogatesEnd - surrogates) - 1
)

// symbolRune returns the rune for symbol n, 0 <= n < maxSymbols.
func symbolRune(n int) rune {
	r := rune(n) + firstRune
	if r >= surrogates {
		r += surrogatesEnd - surrogates
	}
	if r >= utf8.RuneError {
		r++
	}
	return r
}

// run is a stretch that both sides have in common: n symbols from a on one side, from b on the
// other.
type run struct{ a, b, n int }

// diffRunes returns the runs that a shortest diff of a and b keeps. Without a timeout go-diff
// is deterministic and does not write into its input; see limits for what that costs.
func diffRunes(a, b []rune) []run {
	dmp := diffmatchpatch.DiffMatchPatch{DiffTimeout: 0}
	var kept []run
	i, j := 0, 0
	for _, d := range dmp.DiffMainRunes(a, b, false) {
		n := utf8.RuneCountInString(d.Text)
		switch d.Type {
		case diffmatchpatch.DiffDelete:
			i += n
		case diffmatchpatch.DiffInsert:
			j += n
		case diffmatchpatch.DiffEqual:
			kept = append(kept, run{i, j, n})
			i, j = i+n, j+n
		}
	}
	return kept
}
