package diff

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSymbolRune(t *testing.T) {
	last := rune(0)
	for n := range int(maxSymbols) {
		r := symbolRune(n)
		if r <= last || !utf8.ValidRune(r) || r == utf8.RuneError || unicode.IsControl(r) {
			t.Fatalf("symbol %d is %U after %U", n, r, last)
		}
		last = r
	}
	if last != unicode.MaxRune {
		t.Errorf("the last symbol is %U, want %U", last, unicode.MaxRune)
	}
}

// TestDiffRunesBorders takes symbols from both sides of the gaps through go-diff.
func TestDiffRunesBorders(t *testing.T) {
	var a []rune
	for _, n := range []int{0, surrogates - firstRune - 1, surrogates - firstRune, utf8.RuneError - firstRune - 2049, utf8.RuneError - firstRune - 2048, maxSymbols - 1} {
		a = append(a, symbolRune(n), symbolRune(7))
	}
	b := slices.Clone(a)
	b[1], b[9] = symbolRune(8), symbolRune(8)
	got := diffRunes(a, b)
	want := []run{{0, 0, 1}, {2, 2, 7}, {10, 10, 2}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func randomSymbols(r *rand.Rand, n, distinct int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(r.IntN(distinct))
	}
	return out
}

// randomEdits changes about k places of s.
func randomEdits(r *rand.Rand, s []int32, k, distinct int) []int32 {
	s = slices.Clone(s)
	for range k {
		i := r.IntN(len(s) + 1)
		switch {
		case i == len(s) || r.IntN(3) == 0:
			s = slices.Insert(s, i, int32(r.IntN(distinct)))
		case r.IntN(2) == 0:
			s = slices.Delete(s, i, i+1)
		default:
			s[i] = int32(r.IntN(distinct))
		}
	}
	return s
}

// lcsLength is the length of the longest common subsequence, by the book.
func lcsLength(a, b []int32) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

func keptLength(kept []run) int {
	n := 0
	for _, r := range kept {
		n += r.n
	}
	return n
}

func TestAlignIsShortest(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		distinct := 1 + r.IntN(20)
		a := randomSymbols(r, r.IntN(40), distinct)
		b := randomEdits(r, a, r.IntN(30), distinct+r.IntN(5))
		w := aligner{cellsLeft: 1 << 30}
		kept, shortest := w.align(a, b, 1<<30, true)
		checkKept(t, a, b, kept)
		if got, want := keptLength(kept), lcsLength(a, b); !shortest || got != want {
			t.Fatalf("seed %d: keeps %d (shortest %v), want %d", seed, got, shortest, want)
		}
	}
}

// TestAlignOverTheCap holds what align does where not all can be compared: the result is
// still a common subsequence, no more is spent than allowed, and where it claims to be the
// shortest it is.
func TestAlignOverTheCap(t *testing.T) {
	claims := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 4))
		distinct := []int{1, 2, 30, 400}[r.IntN(4)]
		a := randomSymbols(r, 200+r.IntN(800), distinct)
		b := randomEdits(r, a, r.IntN(60), distinct)
		if r.IntN(4) == 0 {
			r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		}
		most := int64(1 + r.IntN(200_000))
		w := aligner{cellsLeft: most + int64(r.IntN(100_000))}
		left := w.cellsLeft
		kept, shortest := w.align(a, b, most, true)
		checkKept(t, a, b, kept)
		if w.cellsLeft < 0 || w.cellsSpent > left {
			t.Fatalf("seed %d: spent %d of %d", seed, w.cellsSpent, left)
		}
		if shortest {
			claims++
			if got, want := keptLength(kept), lcsLength(a, b); got != want {
				t.Fatalf("seed %d: keeps %d, want %d", seed, got, want)
			}
		}
	}
	if claims == 0 || claims == 400 {
		t.Errorf("%d of 400 are shortest: the limits were not met from both sides", claims)
	}
}

// TestPiecesFindFewEdits: a long block with few edits is compared to the token although
// the product of the lengths is far over the cap.
func TestPiecesFindFewEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	a := randomSymbols(r, 40_000, 5000)
	b := randomEdits(r, a, 50, 5000)
	w := aligner{cellsLeft: defaultLimits.allGroups}
	kept, shortest := w.align(a, b, defaultLimits.group, true)
	checkKept(t, a, b, kept)
	if gone := len(a) + len(b) - 2*keptLength(kept); !shortest || gone > 100 {
		t.Errorf("%d symbols removed and added (shortest %v), want at most 100", gone, shortest)
	}
}

func TestCutIsLocal(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	a := randomSymbols(r, 10_000, 300)
	ids := make(map[string]int32)
	pa, begin := cutPieces(a, ids)
	if begin[0] != 0 || begin[len(begin)-1] != len(a) || len(begin) != len(pa)+1 {
		t.Fatalf("%d pieces, begun at %v", len(pa), begin)
	}
	pb, _ := cutPieces(slices.Insert(slices.Clone(a), 5000, 999), ids)
	if got := commonPrefix(pa, pb) + commonSuffix(pa, pb); got < len(pa)-3 {
		t.Errorf("%d of %d pieces outlived an insertion", got, len(pa))
	}
	same, begin := cutPieces(make([]int32, 2000), ids)
	if len(same) == 0 || begin[len(begin)-1] != 2000 {
		t.Errorf("equal symbols: %v", begin)
	}
}
