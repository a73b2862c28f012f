package diff

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// textOf makes a text of blocks; "a|b" is a list item or row of the blocks a and b.
func textOf(blocks ...string) string {
	var s strings.Builder
	for _, b := range blocks {
		if cells := strings.Split(b, "|"); len(cells) > 1 {
			s.WriteRune(pipeline.ItemStart)
			for _, c := range cells {
				s.WriteString(c + "\n")
			}
			s.WriteRune(pipeline.ItemEnd)
			continue
		}
		s.WriteString(b + "\n")
	}
	return s.String()
}

func analyze(blocks ...string) *text.Doc { return text.Analyze(textOf(blocks...)) }

// formatGroups writes groups as people would: "-removed +added", "moved: text", and for an empty
// edit "old: a^b" or "new: a^b", where ^ stands between its neighbours.
func formatGroups(groups []flow.Group) []string {
	var out []string
	for _, g := range groups {
		var parts []string
		if g.Moved {
			for _, w := range g.New {
				parts = append(parts, "moved: "+w.Text)
			}
		}
		for _, d := range g.Differences {
			sign := map[pipeline.Event]string{pipeline.Removed: "-", pipeline.Added: "+"}[d.Event]
			parts = append(parts, sign+d.Text)
		}
		empty := func(side string, ws []flow.Window) {
			for _, w := range ws {
				for _, e := range w.Edits {
					if e[0] == e[1] {
						a, b := w.Tokens[e[0]-1], w.Tokens[e[0]]
						parts = append(parts, side+": "+w.Text[a[0]:a[1]]+"^"+w.Text[b[0]:b[1]])
					}
				}
			}
		}
		empty("old", g.Old)
		empty("new", g.New)
		out = append(out, strings.Join(parts, " "))
	}
	return out
}

func TestDiff(t *testing.T) {
	long := func(s string, n int) string { return strings.TrimSpace(strings.Repeat(s+" ", n)) }
	tests := []struct {
		name     string
		old, new []string
		want     []string
	}{
		// Rule 2.
		{"whole tokens", []string{"cat"}, []string{"cats"}, []string{"-cat +cats"}},
		{"whole tokens in a sentence", []string{"the cat sat"}, []string{"the cats sat"}, []string{"-cat +cats"}},
		{"numbers", []string{"costs 100 euro"}, []string{"costs 1000 euro"}, []string{"-100 +1000"}},
		{"two blocks that merge", []string{"the brown fox", "jumps over dogs"}, []string{"the brown fox jumps over dogs"}, []string{"new: fox^jumps"}},
		{"a block that is split", []string{"the brown fox jumps over dogs"}, []string{"the brown fox", "jumps over dogs"}, []string{"old: fox^jumps"}},
		{"a title is a block of its own", []string{"News", "Zeus rests"}, []string{"Old News", "Zeus rests"}, []string{"+Old"}},
		// Rule 3.
		{"equal", []string{"a b", "c d"}, []string{"a b", "c d"}, nil},
		{"an insertion above moves nothing", []string{"one two", "three four"}, []string{"zero", "one two", "three four"}, []string{"+zero"}},
		{"a block without tokens is none", []string{"a b", "c d"}, []string{"a b", "* * *", "c d"}, nil},
		{"moved", []string{"alpha one", "beta two", "gamma three"}, []string{"beta two", "gamma three", "alpha one"}, []string{"moved: alpha one"}},
		{"moved row", []string{"alpha|one", "beta two", "gamma three"}, []string{"beta two", "gamma three", "alpha|one"}, []string{"moved: alpha moved: one"}},
		{"left-over pairs from the top", []string{"x x", "a a", "x x", "b b", "c c", "d d"}, []string{"a a", "b b", "c c", "d d", "x x", "y", "x x"},
			[]string{"moved: x x", "+y", "moved: x x"}},
		{"case alone is a group", []string{"Argus sleeps"}, []string{"ARGUS sleeps"}, []string{"-Argus +ARGUS"}},
		{"marks alone are a group", []string{"un cafe noir"}, []string{"un café noir"}, []string{"-cafe +café"}},
		{"another Unicode form is nothing", []string{"un cafe\u0301 noir"}, []string{"un caf\u00e9 noir"}, nil},
		{"another apostrophe is nothing", []string{"don't run"}, []string{"don\u2019t run"}, nil},
		{"another look of a sign is nothing", []string{"open \u2714", "5 \u2212 3"}, []string{"open \u2714\ufe0f", "5 - 3"}, nil},
		{"moved and another case", []string{"Alpha one", "beta two", "gamma three"}, []string{"beta two", "gamma three", "alpha one"}, []string{"-Alpha +alpha"}},
		{"a row is one block", []string{"apples|3 euro"}, []string{"apples|4 euro"}, []string{"-3 +4"}},
		{"a cell's border ends phrases", []string{"apples|red pears"}, []string{"apples red|pears"}, []string{"old: red^pears new: apples^red"}},
		{"only markup", []string{"one two|three four"}, []string{"one two", "three four"}, nil},
		{"edited", []string{"Zeus rests on Olympus today"}, []string{"Zeus sleeps on Olympus today"}, []string{"-rests +sleeps"}},
		{"edited beside another", []string{"Zeus rests on Olympus", "Hera reads"}, []string{"Zeus sleeps on Olympus", "Hera reads a book"}, []string{"-rests +sleeps", "+a book"}},
		{"unlike blocks are groups of their own", []string{"alpha beta gamma delta"}, []string{"one two three four"}, []string{"-alpha beta gamma delta", "+one two three four"}},
		{"less than half of the smaller", []string{"Argus a b c d"}, []string{"Argus e f g h"}, []string{"-Argus a b c d", "+Argus e f g h"}},
		{"half of the smaller", []string{"a b c d"}, []string{"a b e f"}, []string{"-c d +e f"}},
		{"smaller than a quarter", []string{"a b"}, []string{"a b c d e f g h i"}, []string{"-a b", "+a b c d e f g h i"}},
		{"a quarter", []string{"a b"}, []string{"a b c d e f g h"}, []string{"+c d e f g h"}},
		{"smaller than a quarter, five kept", []string{"a b c d e"}, []string{"a b c d e " + long("z", 30)}, []string{"+" + long("z", 30)}},
		{"moved and edited", []string{"Argus has a hundred eyes", "one two three", "four five six"},
			[]string{"one two three", "four five six", "hundred eyes has Argus closed"}, []string{"-Argus has a hundred eyes +hundred eyes has Argus closed"}},
		{"three blocks, transitive", []string{"a b c d e f"}, []string{"a b c", "d e f"}, []string{"old: c^d"}},
		{"a new passage while another went", []string{"Argus watches Io by day", "Hermes runs"}, []string{"Hermes runs", "Why did Argus fall asleep"},
			[]string{"-Argus watches Io by day", "+Why did Argus fall asleep"}},
		// Rule 4.
		{"in stock", []string{"Zeus is in stock"}, []string{"Zeus is out of stock"}, []string{"-in +out of"}},
		{"a deletion joins", []string{"honeymoon trial murder case"}, []string{"honeymoon murder case"}, []string{"-trial new: honeymoon^murder"}},
		{"an insertion splits", []string{"honeymoon murder case"}, []string{"honeymoon trial murder case"}, []string{"+trial old: honeymoon^murder"}},
		{"reflowed", []string{"a b c d", "e f"}, []string{"a b", "c d e f"}, []string{"old: b^c new: d^e"}},
		{"kept between two groups", []string{"a b c", "d e f"}, []string{"a b", "c d e f"}, []string{"-c", "+c"}},
		// Rule 8.
		{"three equal tokens apart", []string{"a x b c d y e"}, []string{"a b c d e"}, []string{"-x b c d y new: a^b new: d^e"}},
		{"four equal tokens apart", []string{"a x b c d e y f"}, []string{"a b c d e f"}, []string{"-x -y new: a^b new: e^f"}},
		{"exact text", []string{"We have a cat."}, []string{"We have a \"Big-Eyed\", old cat."}, []string{"+Big-Eyed\", old old: a^cat"}},
		// The cases A1 and C1 of the original.
		{"A1 and C1", []string{"is the of the 100-eyed giant in Greek mythology."},
			[]string{"Argus Panoptes is the name of the 100-eyed giant in Norse mythology."},
			[]string{"+Argus Panoptes is the name -Greek +Norse old: the^of"}},
		{"completed phrase", []string{"the brown dog and fox"}, []string{"the brown dog and fox brown"}, []string{"+brown"}},
		{"the offset of what follows", []string{"foo one"}, []string{"foo two"}, []string{"-one +two"}},
		// Ends.
		{"from nothing", nil, []string{"a b"}, []string{"+a b"}},
		{"to nothing", []string{"a b"}, nil, []string{"-a b"}},
		{"only punctuation", []string{"a, b"}, []string{"a; b!"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			old, new := analyze(tt.old...), analyze(tt.new...)
			groups := Diff(old, new)
			if got := formatGroups(groups); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			checkGroups(t, old, new, groups)
		})
	}
}

func TestDiffOffsets(t *testing.T) {
	groups := Diff(analyze("is the of the 100-eyed giant in Greek mythology."), analyze("Argus Panoptes is the name of the 100-eyed giant in Norse mythology."))
	if len(groups) != 1 {
		t.Fatalf("got %d groups, want 1", len(groups))
	}
	var got []string
	for _, d := range groups[0].Differences {
		got = append(got, fmt.Sprint(d.Event, " ", d.Text, " ", d.Offset, " ", d.Edit))
	}
	want := []string{"added Argus Panoptes is the name 0 1", "removed Greek 32 2", "added Norse 52 2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestGroupOrder(t *testing.T) {
	old := analyze("gone first", "keep one here", "gone second", "gone third", "keep two here")
	new := analyze("keep one here", "brand new", "keep two here", "last of all")
	got := formatGroups(Diff(old, new))
	want := []string{"-gone first", "-gone second", "-gone third", "+brand new", "+last of all"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// tokenCounts is how often each block stands in a text, by its exact tokens.
type tokenCounts map[string]int

func (n tokenCounts) add(d *text.Doc, by int) {
	for _, b := range d.Blocks {
		var words []string
		for t := b.First; t < b.Last; t++ {
			words = append(words, text.PlainForm(d.Text(t)))
		}
		n[strings.Join(words, " ")] += by
	}
}

// checkCoarse holds coarse groups against brute force. What was removed and added are whole
// blocks that account for the whole difference between the texts, what moved stands on both
// sides, and nothing is named twice.
func checkCoarse(t *testing.T, old, new *text.Doc, groups []flow.Group) {
	t.Helper()
	want, got := tokenCounts{}, tokenCounts{}
	want.add(old, -1)
	want.add(new, 1)
	end := map[pipeline.Event]map[bool]int{pipeline.Removed: {}, pipeline.Added: {}}
	stretch := func(d *text.Doc, event pipeline.Event, moved bool, s string, offset, by int, n tokenCounts) {
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
		moved := tokenCounts{}
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
	l := defaultLimits
	l.blocks, l.tokens = 0, 0
	moved := 0
	for seed := range uint64(5000) {
		before, after := randomPair(rand.New(rand.NewPCG(seed, 3)))
		old, new := analyze(before...), analyze(after...)
		groups, _ := diffWithin(old, new, l)
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
	l := defaultLimits
	l.blocks = 3
	old := text.Analyze("stays\nmoves\none\n...\ntwo\nends\n")
	new := text.Analyze("stays\nthree\nends\nmoves\nENDS here\n")
	groups, _ := diffWithin(old, new, l)
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
	if groups, _ = diffWithin(old, new, l); len(groups) == 0 || groups[0].Coarse {
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
