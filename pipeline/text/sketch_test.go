package text

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// newTestSketch returns the sketch of words and the set of its shingles.
func newTestSketch(t testing.TB, words []string) (*Sketch, map[string]bool) {
	t.Helper()
	s, ok := NewSketch(Analyze(strings.Join(words, " ")))
	if !ok {
		t.Fatalf("%d words have no sketch", len(words))
	}
	set := map[string]bool{}
	for i := range len(words) - shingleLength + 1 {
		set[strings.Join(words[i:i+shingleLength], " ")] = true
	}
	return &s, set
}

func randomWords(r *rand.Rand, n int) []string {
	ws := make([]string, n)
	for i := range ws {
		ws[i] = fmt.Sprint("w", r.IntN(5000))
	}
	return ws
}

// TestSketch compares the estimates with the shares of common shingles.
func TestSketch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 128))
	for _, words := range []int{60, 300, 4000} {
		for _, changed := range []float64{0, 0.01, 0.05, 0.1, 0.3, 1} {
			squares, bias := 0.0, 0.0
			const rounds = 60
			for range rounds {
				a := randomWords(r, words)
				b := append([]string(nil), a...)
				for i := range b {
					if r.Float64() < changed {
						b[i] = fmt.Sprint("x", r.IntN(5000))
					}
				}
				x, in := newTestSketch(t, a)
				y, out := newTestSketch(t, b)
				common := 0
				for k := range in {
					if out[k] {
						common++
					}
				}
				d := x.Similarity(y) - float64(common)/float64(len(in)+len(out)-common)
				squares, bias = squares+d*d, bias+d
			}
			if rms := math.Sqrt(squares / rounds); rms > 0.08 || math.Abs(bias/rounds) > 0.03 {
				t.Errorf("%d words, %.0f %% changed: error %.3f, bias %.3f", words, 100*changed, rms, bias/rounds)
			}
		}
	}
}

func TestSketchOfEqualTexts(t *testing.T) {
	words := randomWords(rand.New(rand.NewPCG(1, 1)), 52)
	x, _ := newTestSketch(t, words)
	y, _ := newTestSketch(t, words)
	if *x != *y || x.Similarity(y) != 1 || x.Bands() != y.Bands() {
		t.Error("two sketches of one text differ")
	}
	z, ok := UnpackSketch(x.Pack())
	if !ok || z != *x {
		t.Error("a packed sketch is another one")
	}
	if _, ok := NewSketch(Analyze(strings.Join(words[:51], " "))); ok {
		t.Error("51 words have a sketch")
	}
	for _, b := range [][]byte{nil, x.Pack()[:512], append([]byte{9}, x.Pack()[1:]...)} {
		if _, ok := UnpackSketch(b); ok {
			t.Errorf("%d bytes are a sketch", len(b))
		}
	}
}

// TestSketchOfRepeats: a text of one word has a single shingle, however long it is.
func TestSketchOfRepeats(t *testing.T) {
	s, ok := NewSketch(Analyze(strings.Repeat("word ", 1000)))
	if !ok || s.Similarity(&s) != 1 {
		t.Error("no sketch")
	}
}

// TestSketchBands: how often texts of some similarity share a band.
func TestSketchBands(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 8))
	for _, c := range []struct {
		changed  float64 // share of words
		min, max float64
	}{{0.03, 0.95, 1}, {0.25, 0, 0.15}} { // similarity 0.84 and 0.27
		found := 0
		const rounds = 200
		for range rounds {
			a := randomWords(r, 1000)
			b := append([]string(nil), a...)
			for i := range b {
				if r.Float64() < c.changed {
					b[i] = "other"
				}
			}
			x, _ := newTestSketch(t, a)
			y, _ := newTestSketch(t, b)
			bands, others := x.Bands(), y.Bands()
			for i := range bands {
				if bands[i] == others[i] {
					found++
					break
				}
			}
		}
		if share := float64(found) / rounds; share < c.min || share > c.max {
			t.Errorf("%.0f %% of words changed: %.2f share a band", 100*c.changed, share)
		}
	}
}

func BenchmarkSketch(b *testing.B) {
	d := Analyze(strings.Join(randomWords(rand.New(rand.NewPCG(1, 2)), 3500), " "))
	b.SetBytes(int64(len(d.Content)))
	for b.Loop() {
		NewSketch(d)
	}
}
