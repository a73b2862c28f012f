package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline/flow"
)

// numberedWords returns "w0 w1 ..." of n words.
func numberedWords(prefix string, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprint(prefix, i)
	}
	return strings.Join(words, " ")
}

func onlyGroup(t *testing.T, old, new string) flow.Group {
	t.Helper()
	a, b := analyze(old), analyze(new)
	groups := Diff(a, b)
	checkGroups(t, a, b, groups)
	if len(groups) != 1 {
		t.Fatalf("got %d groups, want 1", len(groups))
	}
	return groups[0]
}

func TestWindowReach(t *testing.T) {
	left, right := numberedWords("l", 100), numberedWords("r", 100)
	g := onlyGroup(t, left+" cat "+right, left+" dog "+right)
	w := g.New[0]
	if got, want := len(w.Tokens), 64+1+64; len(g.New) != 1 || got != want {
		t.Fatalf("%d windows, the first of %d tokens, want 1 of %d", len(g.New), got, want)
	}
	if !strings.HasPrefix(w.Text, "l36 ") || !strings.HasSuffix(w.Text, " r63") || !w.CutLeft || !w.CutRight {
		t.Errorf("window %q, cut %v %v", w.Text, w.CutLeft, w.CutRight)
	}
	if w.Edits[0] != (flow.Span{64, 65}) {
		t.Errorf("edits %v", w.Edits)
	}
}

func TestWindowReachesTheBorder(t *testing.T) {
	g := onlyGroup(t, "(“The cat, sat”).", "(“The dog, sat”).")
	if w := g.New[0]; w.Text != "(“The dog, sat”)." || w.CutLeft || w.CutRight || w.Offset != 0 {
		t.Errorf("window %q at %d, cut %v %v", w.Text, w.Offset, w.CutLeft, w.CutRight)
	}
}

func TestItems(t *testing.T) {
	item := func(blocks ...string) string { return "\x02" + strings.Join(blocks, "\n") + "\n\x03" }
	long := numberedWords("w", 45)
	for name, tt := range map[string]struct{ old, new, want string }{
		"another cell": {item("lamp", "4"), item("lamp", "7"), "changed lamp"},
		"a new row":    {"a b\n", "a b\n" + item(" Lamp ", "7"), "new Lamp"},
		"a row less":   {"a b\n" + item("Lamp", "7"), "a b\n", "gone Lamp"},
		"no row":       {"lamp\n4\n", "lamp\n7\n", " "},
		"a long row":   {item("lamp", long, "4"), item("lamp", long, "7"), " "},
		"a long cell":  {item(strings.Repeat("é", 60), "4"), item(strings.Repeat("é", 60), "7"), "changed " + strings.Repeat("é", 50) + "…"},
		"a property":   {item("state", "open") + item("age", "one day"), item("state", "closed at noon") + item("age", "one day"), "changed state"},
		"one of a title": {item("Gas leak", "nine o'clock", "five units", "Hill Road") + item("age", "one day"),
			item("Gas leak", "seven at night", "two units", "Lake Street") + item("age", "one day"), "new Gas leak"},
		"one title each": {item("open", "a b") + item("open", "c d"), item("open", "x y") + item("open", "c d"), "new open"},
		"a labelled row": {item("id: 4", "state: old", "name: Lamp"), item("id: 4", "state: new", "name: Lamp"), "changed Lamp"},
		"an inner list":  {item("fruit", item("pears", "4")), item("fruit", item("pears", "7")), "changed fruit"},
		"one that moved": {item("lamp", "4") + "a b c\nd e f\n", "a b c\nd e f\n" + item("lamp", "4"), " lamp"},
	} {
		groups := Diff(analyze(tt.old), analyze(tt.new))
		g := groups[len(groups)-1]
		if got := g.Item + " " + g.Title; got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestPassages(t *testing.T) {
	item := func(blocks ...string) string { return "\x02" + strings.Join(blocks, "\n") + "\n\x03" }
	long := numberedWords("w", 200)
	for name, tt := range map[string]struct {
		old, new string
		want     []string
	}{
		"a short block":  {"one two three\n", "one two four\n", nil},
		"a long block":   {long + " end\n", long + " END\n", []string{long + " END"}},
		"an item":        {item("lamp", "4", "oil"), item("lamp", "7", "oil"), []string{"lamp\n7\noil"}},
		"a new item":     {"a b\n", "a b\n" + item("lamp", "7"), nil},
		"too long":       {strings.Repeat(long+" ", 5) + " end\n", strings.Repeat(long+" ", 5) + " END\n", nil},
		"a nested item":  {item("fruit", item("pears", "4")), item("fruit", item("pears", "7")), []string{"fruit\n\x02pears\n7"}},
		"two edits":      {item("lamp", "4", "oil", "2"), item("lamp", "7", "oil", "3"), []string{"lamp\n7\noil\n3"}},
		"only an insert": {"one two " + long + "\n", "one two " + long + " three\n", []string{"one two " + long + " three"}},
	} {
		a, b := analyze(tt.old), analyze(tt.new)
		groups := Diff(a, b)
		var got []string
		for _, p := range groups[len(groups)-1].NewPassages {
			if b.Content[p.Offset:p.Offset+len(p.Text)] != p.Text {
				t.Errorf("%s: %q is not what stands at %d", name, p.Text, p.Offset)
			}
			got = append(got, p.Text)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestWindowOfLongWords(t *testing.T) {
	long := strings.Repeat("é", 300)
	side := strings.TrimSpace(strings.Repeat(long+" ", 10))
	w := onlyGroup(t, side+" cat "+side, side+" dog "+side).New[0]
	// Three words of 300 and their spaces are 903 characters, a fourth is too much.
	if got, want := utf8.RuneCountInString(w.Text), 903+3+903; got != want || len(w.Tokens) != 7 || !w.CutLeft || !w.CutRight {
		t.Errorf("%d characters, %d tokens, want %d and 7", got, len(w.Tokens), want)
	}
	// The border itself can be too far as well.
	far := strings.Repeat("!", 1001)
	w = onlyGroup(t, far+" the cat "+far, far+" the dog "+far).New[0]
	if w.Text != "the dog" || !w.CutLeft || !w.CutRight {
		t.Errorf("window of %d bytes, cut %v %v", len(w.Text), w.CutLeft, w.CutRight)
	}
}

// TestWindowOfAnEmptyEdit: both neighbours are in it, however long they are.
func TestWindowOfAnEmptyEdit(t *testing.T) {
	x, y := strings.Repeat("x", 1500), strings.Repeat("y", 1500)
	g := onlyGroup(t, x+" cat "+y, x+" "+y)
	if w := g.New[0]; w.Text != x+" "+y || len(w.Edits) != 1 || w.Edits[0] != (flow.Span{1, 1}) {
		t.Errorf("window of %d bytes with edits %v", len(w.Text), w.Edits)
	}
	if w := g.Old[0]; w.Text != "cat" || !w.CutLeft || !w.CutRight {
		t.Errorf("old window %q", w.Text)
	}
}

func TestWindowsThatTouchAreOne(t *testing.T) {
	for _, tt := range []struct{ between, windows int }{{2, 1}, {127, 1}, {128, 1}, {129, 2}, {500, 2}} {
		middle := numberedWords("m", tt.between)
		g := onlyGroup(t, "one "+middle+" two", "uno "+middle+" due")
		if len(g.Old) != tt.windows || len(g.New) != tt.windows {
			t.Errorf("%d tokens between: %d old and %d new windows, want %d", tt.between, len(g.Old), len(g.New), tt.windows)
		}
		if tt.windows == 1 {
			if w := g.New[0]; len(w.Edits) != 2 || w.CutLeft || w.CutRight {
				t.Errorf("%d tokens between: edits %v, cut %v %v", tt.between, w.Edits, w.CutLeft, w.CutRight)
			}
		}
	}
}

func TestWindowsOfSeveralBlocks(t *testing.T) {
	g := onlyGroup(t, "the name of the lamp is|cat|old", "the name of the lamp is|dog|young")
	if len(g.New) != 2 || g.New[0].Text != "dog" || g.New[1].Text != "young" {
		t.Errorf("windows %+v", g.New)
	}
}

func TestMovedBlockIsWhole(t *testing.T) {
	long := numberedWords("w", 300)
	a, b := analyze(long+".", "one two", "three four"), analyze("one two", "three four", long+".")
	groups := Diff(a, b)
	checkGroups(t, a, b, groups)
	if len(groups) != 1 || !groups[0].Moved || len(groups[0].Differences) != 0 {
		t.Fatalf("groups %+v", groups)
	}
	for side, ws := range [][]flow.Window{groups[0].Old, groups[0].New} {
		if len(ws) != 1 || ws[0].Text != long+"." || ws[0].Edits[0] != (flow.Span{0, 300}) || ws[0].CutLeft || ws[0].CutRight {
			t.Errorf("side %d: %d windows", side, len(ws))
		}
	}
	if got, want := groups[0].New[0].Offset, len("one two\nthree four\n"); got != want {
		t.Errorf("offset %d, want %d", got, want)
	}
}
