package diff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline/text"
)

// zipfWords returns words as they occur in texts: few often, many seldom.
type zipfWords struct{ z *rand.Zipf }

func newZipfWords(seed uint64) zipfWords {
	return zipfWords{rand.NewZipf(rand.New(rand.NewPCG(seed, 9)), 1.1, 8, 20_000)}
}

func (w zipfWords) word() string { return fmt.Sprintf("w%d", w.z.Uint64()) }

// newPage returns about size bytes of lines of 5 to 40 words.
func newPage(seed uint64, size int) [][]string {
	w := newZipfWords(seed)
	r := rand.New(rand.NewPCG(seed, 10))
	var lines [][]string
	for n := 0; n < size; {
		line := make([]string, 5+r.IntN(36))
		for i := range line {
			line[i] = w.word()
			n += len(line[i]) + 1
		}
		lines = append(lines, line)
	}
	return lines
}

// changeWords returns lines with the share percent changed: half of it whole lines, half
// single words.
func changeWords(seed uint64, lines [][]string, percent float64) [][]string {
	w := newZipfWords(seed + 1)
	r := rand.New(rand.NewPCG(seed, 11))
	out := make([][]string, len(lines))
	for i, line := range lines {
		out[i] = append([]string(nil), line...)
		whole := r.Float64()*200 < percent
		for k := range out[i] {
			if whole || r.Float64()*200 < percent {
				out[i][k] = w.word()
			}
		}
	}
	return out
}

func newDoc(lines [][]string, separator string) *text.Doc {
	parts := make([]string, len(lines))
	for i, l := range lines {
		parts[i] = strings.Join(l, " ")
	}
	return text.Analyze(strings.Join(parts, separator) + "\n")
}

type hardCase struct {
	name     string
	old, new *text.Doc
}

// hardCases are pairs on which a careless diff takes for ever.
func hardCases() []hardCase {
	repeat := func(s string, n int) string { return strings.Repeat(s, n) }
	lines := newPage(1, 200_000)
	shuffled := append([][]string(nil), lines...)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	few := rand.New(rand.NewPCG(2, 2))
	letters := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString([]string{"a ", "b ", "c ", "d "}[few.IntN(4)])
		}
		return b.String()
	}
	blocks := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "the of %d and the\n", few.IntN(1<<30)+i)
		}
		return b.String()
	}
	return []hardCase{
		{"one word repeated", text.Analyze("x " + repeat("a ", 100_000) + "b " + repeat("a ", 100_000) + "y"), text.Analyze("z " + repeat("a ", 150_000) + "w")},
		{"few edits between repeats", text.Analyze("c " + repeat("a ", 100_000) + "d " + repeat("a ", 100_000) + "c d"), text.Analyze("d " + repeat("a ", 99_990) + "c " + repeat("a ", 100_000) + "d c")},
		{"two words in turn", text.Analyze(repeat("a b ", 60_000)), text.Analyze(repeat("b a a ", 40_000))},
		{"four letters at random", text.Analyze(letters(80_000)), text.Analyze(letters(80_000))},
		{"equal lines", text.Analyze(repeat("a b\n", 50_000)), text.Analyze(repeat("a b\nb a\n", 30_000))},
		{"lines in another order", newDoc(lines, "\n"), newDoc(shuffled, "\n")},
		{"words in another order", newDoc(lines, " "), newDoc(shuffled, " ")},
		{"many like blocks", text.Analyze(blocks(20_000)), text.Analyze(blocks(20_000))},
		{"one word lines", text.Analyze(strings.ReplaceAll(letters(50_000), " ", "\n")), text.Analyze(strings.ReplaceAll(letters(50_000), " ", "\n"))},
		{"all new", newDoc(newPage(3, 400_000), "\n"), newDoc(newPage(4, 400_000), "\n")},
	}
}

// withGroupingLimit returns l without a limit of what is grouped.
func withGroupingLimit(l limits) limits {
	l.blocks, l.tokens = math.MaxInt, math.MaxInt
	return l
}

func TestWorkIsBounded(t *testing.T) {
	small := withGroupingLimit(limits{units: 1 << 18, grouping: 1 << 18, group: 1 << 16, allGroups: 1 << 18})
	for _, a := range hardCases() {
		t.Run(a.name, func(t *testing.T) {
			for _, l := range []limits{small, withGroupingLimit(limits{})} {
				groups, spent := diffWithin(a.old, a.new, l)
				// Grouping is paid for three times at most: the diff, shared tokens, lonely blocks.
				if most := l.units + 3*l.grouping + l.allGroups; spent > most {
					t.Errorf("spent %d cells, want at most %d", spent, most)
				}
				for _, g := range groups {
					for _, w := range g.Old {
						checkWindow(t, a.old, w)
					}
					for _, w := range g.New {
						checkWindow(t, a.new, w)
					}
				}
			}
		})
	}
}

// TestConcurrentUse compares two shared texts a hundred times at once.
func TestConcurrentUse(t *testing.T) {
	lines := newPage(7, 8_000)
	old, new := newDoc(lines, "\n"), newDoc(changeWords(7, lines, 30), "\n")
	want := Diff(old, new)
	if len(want) == 0 {
		t.Fatal("no groups")
	}
	tight := withGroupingLimit(limits{units: 1 << 12, grouping: 1 << 12, group: 1 << 10, allGroups: 1 << 14})
	wantTight, _ := diffWithin(old, new, tight)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if got := Diff(old, new); !reflect.DeepEqual(got, want) {
				t.Error("another result")
			}
			if got, _ := diffWithin(old, new, tight); !reflect.DeepEqual(got, wantTight) {
				t.Error("another result within tight limits")
			}
		})
	}
	wg.Wait()
}

func FuzzDiff(f *testing.F) {
	f.Add("a b\nc d\n", "a b c\nd\n")
	f.Add("\x02a\nb\n\x03c\n", "c\n\x02b\na\n\x03")
	f.Add("Argus \xff caf\u00e9", "argus cafe\u0301 \x03\x02")
	f.Add("\u4e2d\u6587 l'eau C++", "\u6587\u4e2d l\u2019eau c#")
	f.Fuzz(func(t *testing.T, a, b string) {
		old, new := text.Analyze(a), text.Analyze(b)
		checkGroups(t, old, new, Diff(old, new))
		checkRebuild(t, old, new)
		if got := Diff(old, text.Analyze(a)); got != nil {
			t.Fatalf("a text differs from itself: %v", got)
		}
		for _, l := range []limits{withGroupingLimit(limits{}), withGroupingLimit(limits{units: 4, grouping: 9, group: 4, allGroups: 20})} {
			groups, spent := diffWithin(old, new, l)
			if most := l.units + 3*l.grouping + l.allGroups; spent > most {
				t.Fatalf("spent %d cells, want at most %d", spent, most)
			}
			for _, g := range groups {
				for _, w := range g.Old {
					checkWindow(t, old, w)
				}
				for _, w := range g.New {
					checkWindow(t, new, w)
				}
			}
		}
	})
}
