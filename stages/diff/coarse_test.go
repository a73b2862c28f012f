package diff

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// counts is how often each block stands in a text, by its exact tokens.
type counts map[string]int

func (n counts) add(d *text.Doc, by int) {
	for _, b := range d.Blocks {
		var words []string
		for t := b.First; t < b.Last; t++ {
			words = append(words, norm.NFC.String(d.Text(t)))
		}
		n[strings.Join(words, " ")] += by
	}
}

// checkCoarse holds coarse groups against brute force. What was removed and added are whole
// blocks that account for the whole difference between the texts, what moved stands on both
// sides, and nothing is named twice.
func checkCoarse(t *testing.T, old, new *text.Doc, groups []pipeline.Group) {
	t.Helper()
	want, got := counts{}, counts{}
	want.add(old, -1)
	want.add(new, 1)
	end := map[pipeline.Event]map[bool]int{pipeline.Removed: {}, pipeline.Added: {}}
	stretch := func(d *text.Doc, event pipeline.Event, moved bool, s string, offset, by int, n counts) {
		if d.Content[offset:offset+len(s)] != s || offset < end[event][moved] {
			t.Fatalf("%s %q is not at %d, or stands before the one before it", event, s, offset)
		}
		end[event][moved] = offset + len(s)
		n.add(text.Analyze(s), by)
	}
	for _, g := range groups {
		if !g.Coarse {
			t.Fatalf("a group is not coarse: %+v", g)
		}
		for _, x := range g.Differences {
			if x.Event == pipeline.Removed {
				stretch(old, x.Event, false, x.Text, x.Offset, -1, got)
			} else {
				stretch(new, x.Event, false, x.Text, x.Offset, 1, got)
			}
		}
		moved := counts{}
		for _, w := range g.Old {
			stretch(old, pipeline.Removed, true, w.Text, w.Offset, -1, moved)
		}
		for _, w := range g.New {
			stretch(new, pipeline.Added, true, w.Text, w.Offset, 1, moved)
		}
		for block, n := range moved {
			if n != 0 || !g.Moved {
				t.Fatalf("%q moved, and stands %+d times more in the new text", block, n)
			}
		}
	}
	for block := range want {
		if got[block] != want[block] {
			t.Fatalf("%q: the texts differ by %+d, the groups by %+d", block, want[block], got[block])
		}
	}
	for block := range got {
		if got[block] != want[block] {
			t.Fatalf("%q: the texts differ by %+d, the groups by %+d", block, want[block], got[block])
		}
	}
}

// TestCoarse compares random pairs without room to group anything.
func TestCoarse(t *testing.T) {
	l := standard
	l.blocks, l.tokens = 0, 0
	moved := 0
	for seed := range uint64(5000) {
		before, after := randomPair(rand.New(rand.NewPCG(seed, 3)))
		old, new := analyze(before...), analyze(after...)
		groups, _ := compare(old, new, l)
		checkCoarse(t, old, new, groups)
		if fine := Diff(old, new); (len(fine) == 0) != (len(groups) == 0) {
			t.Fatalf("seed %d: %q -> %q: %d groups, and %d coarse ones", seed, before, after, len(fine), len(groups))
		}
		for _, g := range groups {
			if g.Moved {
				moved++
			}
		}
	}
	if moved == 0 {
		t.Error("nothing moved in any pair")
	}
}

// TestCoarseForm shows what a coarse group looks like.
func TestCoarseForm(t *testing.T) {
	l := standard
	l.blocks = 3
	old := text.Analyze("stays\nmoves\none\n...\ntwo\nends\n")
	new := text.Analyze("stays\nthree\nends\nmoves\nENDS here\n")
	groups, _ := compare(old, new, l)
	got, err := json.Marshal(groups)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"coarse":true,"differences":[` +
		`{"event":"removed","text":"one\n...\ntwo","offset":12},` +
		`{"event":"added","text":"three","offset":6},{"event":"added","text":"ENDS here","offset":23}]},` +
		`{"moved":true,"old":[{"offset":6,"text":"moves"}],"new":[{"offset":17,"text":"moves"}],"coarse":true}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	l.blocks = 8
	if groups, _ = compare(old, new, l); len(groups) == 0 || groups[0].Coarse {
		t.Errorf("eight blocks changed, which is within the limit, and the groups are %+v", groups)
	}
}

// oneWordBlocks returns n blocks of one word each, all of them different.
func oneWordBlocks(prefix string, n int) *text.Doc {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d\n", prefix, i)
	}
	return text.Analyze(b.String())
}

// TestMemoryIsBounded: blocks beyond the limit take some hundred bytes each, and what is said
// of them takes little more than the texts.
func TestMemoryIsBounded(t *testing.T) {
	const n = 60_000
	old, new := oneWordBlocks("a", n), oneWordBlocks("b", n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	groups := Diff(old, new)
	runtime.ReadMemStats(&after)
	checkCoarse(t, old, new, groups)
	if per := (after.TotalAlloc - before.TotalAlloc) / (2 * n); per > 600 { // grouped, they take 2,500
		t.Errorf("%d bytes for each block, want at most 600", per)
	}
	body, err := json.Marshal(groups)
	if err != nil {
		t.Fatal(err)
	}
	if most := (len(old.Content) + len(new.Content)) * 3 / 2; len(body) > most {
		t.Errorf("the groups take %d bytes, want at most %d", len(body), most)
	}
}
