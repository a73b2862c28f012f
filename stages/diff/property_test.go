package diff

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// checkGroups holds groups against what must be true of any result for old and new.
func checkGroups(t testing.TB, old, new *text.Doc, groups []flow.Group) {
	t.Helper()
	if again := Diff(old, new); !slices.EqualFunc(groups, again, func(a, b flow.Group) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Fatalf("another result the second time")
	}
	touched := [2]map[int]bool{{}, {}} // offsets of tokens in edits
	for _, g := range groups {
		if len(g.Old)+len(g.New) == 0 {
			t.Fatalf("a group without windows")
		}
		for side, ws := range [][]flow.Window{g.Old, g.New} {
			d := []*text.Doc{old, new}[side]
			for _, w := range ws {
				checkWindow(t, d, w)
				for _, e := range w.Edits {
					for _, tok := range w.Tokens[e[0]:e[1]] {
						if touched[side][w.Offset+tok[0]] {
							t.Fatalf("token %q at %d is in two edits", w.Text[tok[0]:tok[1]], w.Offset+tok[0])
						}
						touched[side][w.Offset+tok[0]] = true
					}
				}
			}
		}
		checkDifferences(t, old, new, g)
	}
	// What no edit touched is the same on both sides, in some order of the blocks.
	if a, b := untouched(old, touched[0]), untouched(new, touched[1]); !slices.Equal(a, b) {
		t.Fatalf("kept tokens differ:\nold %q\nnew %q", a, b)
	}
}

func checkWindow(t testing.TB, d *text.Doc, w flow.Window) {
	t.Helper()
	if w.Offset < 0 || w.Offset+len(w.Text) > len(d.Content) || d.Content[w.Offset:w.Offset+len(w.Text)] != w.Text {
		t.Fatalf("window %q is not at %d", w.Text, w.Offset)
	}
	if strings.ContainsAny(w.Text, "\n\x02\x03") {
		t.Fatalf("window %q holds a mark", w.Text)
	}
	if len(w.Edits) == 0 || len(w.Tokens) == 0 {
		t.Fatalf("window %q has no edits or no tokens", w.Text)
	}
	b, _ := slices.BinarySearchFunc(d.Blocks, w.Offset, func(b text.Block, at int) int { return cmp.Compare(b.End, at+1) })
	block := d.Blocks[b]
	if w.CutLeft != (w.Offset > block.Start) || w.CutRight != (w.Offset+len(w.Text) < block.End) {
		t.Fatalf("window %q of %q: cut left %v, right %v", w.Text, d.Content[block.Start:block.End], w.CutLeft, w.CutRight)
	}
	first, _ := slices.BinarySearchFunc(d.Tokens, w.Offset, func(x text.Token, at int) int { return cmp.Compare(x.Start, at) })
	for i, tok := range w.Tokens {
		if x := d.Tokens[first+i]; x.Start != w.Offset+tok[0] || x.End != w.Offset+tok[1] {
			t.Fatalf("window %q: token %d is %v, want that at %v", w.Text, i, tok, x)
		}
	}
	last := -1
	for _, e := range w.Edits {
		if e[0] > e[1] || e[0] <= last && e[0] > 0 || e[1] > len(w.Tokens) || e[0] == e[1] && (e[0] == 0 || e[0] == len(w.Tokens)) {
			t.Fatalf("window %q: edits %v", w.Text, w.Edits)
		}
		last = e[1]
	}
}

func checkDifferences(t testing.TB, old, new *text.Doc, g flow.Group) {
	t.Helper()
	for _, d := range g.Differences {
		doc := new
		if d.Event == pipeline.Removed {
			doc = old
		}
		if doc.Content[d.Offset:d.Offset+len(d.Text)] != d.Text || d.Text == "" {
			t.Fatalf("difference %q is not at %d", d.Text, d.Offset)
		}
	}
	if g.Moved && len(g.Differences) > 0 {
		t.Fatalf("moved, with differences")
	}
}

// untouched returns the tokens of d that are in no edit, sorted.
func untouched(d *text.Doc, touched map[int]bool) []string {
	var out []string
	for i, tok := range d.Tokens {
		if !touched[tok.Start] {
			out = append(out, text.PlainForm(d.Text(i)))
		}
	}
	slices.Sort(out)
	return out
}

// randomPair returns two versions of a small page over few words, so that much repeats.
func randomPair(r *rand.Rand) (old, new []string) {
	words := []string{"a", "b", "c", "d", "A", "é", "e", "f", "g"}[:2+r.IntN(8)]
	block := func() string {
		out := make([]string, 1+r.IntN(9))
		for i := range out {
			out[i] = words[r.IntN(len(words))]
			if r.IntN(12) == 0 && i > 0 {
				out[i] = "|" + out[i]
			}
		}
		return strings.Join(out, " ")
	}
	for range r.IntN(7) {
		old = append(old, block())
	}
	new = slices.Clone(old)
	for range r.IntN(5) {
		i := r.IntN(len(new) + 1)
		switch r.IntN(5) {
		case 0:
			new = slices.Insert(new, i, block())
		case 1:
			if i < len(new) {
				new = slices.Delete(new, i, i+1)
			}
		case 2:
			r.Shuffle(len(new), func(i, j int) { new[i], new[j] = new[j], new[i] })
		case 3:
			if i+1 < len(new) {
				new = slices.Replace(new, i, i+2, new[i]+" "+new[i+1])
			}
		default:
			if i < len(new) {
				f := strings.Fields(new[i])
				f[r.IntN(len(f))] = words[r.IntN(len(words))]
				new[i] = strings.Join(f, " ")
			}
		}
	}
	return old, new
}

func TestRandomPairs(t *testing.T) {
	for seed := range uint64(5000) {
		old, new := randomPair(rand.New(rand.NewPCG(seed, 1)))
		a, b := analyze(old...), analyze(new...)
		groups := Diff(a, b)
		checkGroups(t, a, b, groups)
		checkRebuild(t, a, b)
		if t.Failed() {
			t.Fatalf("seed %d: %q -> %q", seed, old, new)
		}
	}
}

// checkRebuild looks behind the windows: every unit is in one pair or group, and within a
// group what is not removed from the old side and what is not added to the new one
// is the same sequence.
func checkRebuild(t testing.TB, old, new *text.Doc) {
	t.Helper()
	c := &comparison{old: old, new: new, symbols: newSymbolTable(), limits: defaultLimits}
	p := c.pairUnits()
	seenOld, seenNew := make([]int, len(old.Units)), make([]int, len(new.Units))
	for o, u := range p.newUnit {
		if u >= 0 && p.inOrder[o] && c.sameTokens(o, u) {
			seenOld[o]++
			seenNew[u]++
		}
	}
	for _, s := range c.groupUnits(p) {
		for _, o := range s.old {
			seenOld[o]++
		}
		for _, u := range s.new {
			seenNew[u]++
		}
		a, b := c.symbols.newSequence(old, s.old, exactForm), c.symbols.newSequence(new, s.new, exactForm)
		w := &aligner{cellsLeft: c.limits.allGroups}
		kept, _ := w.align(a.symbols, b.symbols, c.limits.group, true)
		checkKept(t, a.symbols, b.symbols, kept)
	}
	for side, seen := range [][]int{seenOld, seenNew} {
		for u, n := range seen {
			if n != 1 {
				t.Fatalf("unit %d of side %d is in %d pairs and groups", u, side, n)
			}
		}
	}
}

// checkKept holds kept to be a common subsequence of a and b.
func checkKept(t testing.TB, a, b []int32, kept []run) {
	t.Helper()
	i, j := 0, 0
	for _, r := range kept {
		if r.n < 1 || r.a < i || r.b < j || r.a+r.n > len(a) || r.b+r.n > len(b) || !slices.Equal(a[r.a:r.a+r.n], b[r.b:r.b+r.n]) {
			t.Fatalf("%v is no common subsequence of %v and %v", kept, a, b)
		}
		i, j = r.a+r.n, r.b+r.n
	}
}

// TestPhraseCounts holds the windows to what match needs: for every phrase, in every
// group, the occurrences that touch an edit differ between the sides by as many as all
// occurrences in the group's blocks do.
func TestPhraseCounts(t *testing.T) {
	for seed := range uint64(4000) {
		old, new := randomPair(rand.New(rand.NewPCG(seed, 2)))
		a, b := analyze(old...), analyze(new...)
		c := &comparison{old: a, new: b, symbols: newSymbolTable(), limits: defaultLimits}
		w := &aligner{cellsLeft: defaultLimits.allGroups}
		for _, s := range c.groupUnits(c.pairUnits()) {
			if s.moved {
				continue
			}
			g := c.diffGroup(s, w)
			touching, all := make(map[string]int), make(map[string]int)
			countTouching(g.Old, -1, touching)
			countTouching(g.New, 1, touching)
			countInUnits(a, s.old, -1, all)
			countInUnits(b, s.new, 1, all)
			for phrase, n := range all {
				if touching[phrase] != n {
					t.Fatalf("seed %d: %q -> %q: %q: net %d, by edits %d", seed, old, new, phrase, n, touching[phrase])
				}
			}
			for phrase, n := range touching {
				if all[phrase] != n {
					t.Fatalf("seed %d: %q -> %q: %q: net %d, by edits %d", seed, old, new, phrase, all[phrase], n)
				}
			}
		}
	}
}

const longestPhrase = 4

func countTouching(ws []flow.Window, sign int, n map[string]int) {
	for _, w := range ws {
		for p := range w.Tokens {
			for q := p + 1; q <= min(len(w.Tokens), p+longestPhrase); q++ {
				if slices.ContainsFunc(w.Edits, func(e flow.Span) bool { return p < e[1] && e[0] < q || e[0] == e[1] && p < e[0] && e[0] < q }) {
					var words []string
					for _, tok := range w.Tokens[p:q] {
						words = append(words, w.Text[tok[0]:tok[1]])
					}
					n[strings.Join(words, " ")] += sign
				}
			}
		}
	}
}

func countInUnits(d *text.Doc, units []int, sign int, n map[string]int) {
	for _, u := range units {
		for _, b := range d.Blocks[d.Units[u].FirstBlock:d.Units[u].LastBlock] {
			for p := b.First; p < b.Last; p++ {
				var words []string
				for q := p; q < min(b.Last, p+longestPhrase); q++ {
					words = append(words, d.Text(q))
					n[strings.Join(words, " ")] += sign
				}
			}
		}
	}
}
