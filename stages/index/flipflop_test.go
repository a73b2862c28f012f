package index

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// watchTexts gives a document with view the texts in turn, one check each, and returns the
// version that each check made as "text(previous)", or "-" for none.
func watchTexts(t *testing.T, view pipeline.View, texts string) (b *bench, got string) {
	t.Helper()
	id := flow.DocumentID(page, view)
	b = newBench(t)
	b.subscribe("c", view)
	var made []string
	for i, s := range strings.Fields(texts) {
		if i > 0 {
			b.due()
		}
		b.text(id, s, 0, 1)
		vs := all[newVersion](b.out)
		if len(vs) == 0 {
			made = append(made, "-")
			continue
		}
		made = append(made, fmt.Sprintf("%s(%d)", s, vs[0].Snapshot.Previous))
	}
	return b, strings.Join(made, " ")
}

func TestFlipFlop(t *testing.T) {
	for _, c := range []struct {
		k, confirm  int
		texts, want string
	}{
		// Both directions are told once. C is compared with the text that was told last.
		{2, 0, "A B A B A B C", "A(0) B(1) A(2) - - - C(3)"},
		{2, 0, "A B A B B B C", "A(0) B(1) A(2) - - - C(3)"},
		{0, 0, "A B A B", "A(0) B(1) A(2) B(3)"},
		// Two remembered texts are not enough for three.
		{2, 0, "A B C A B C", "A(0) B(1) C(2) A(3) B(4) C(5)"},
		{3, 0, "A B C A B C A D", "A(0) B(1) C(2) A(3) - - - D(4)"},
		// A text is news again after k other changes.
		{2, 0, "A B C D B", "A(0) B(1) C(2) D(3) B(4)"},
		{3, 0, "A B C D B", "A(0) B(1) C(2) D(3) -"},
		// The checks that confirm a text must follow each other.
		{2, 2, "A B B A A B B C C", "A(0) - B(1) - A(2) - - - C(3)"},
		{2, 2, "A B B A A C B C C", "A(0) - B(1) - A(2) - - - C(3)"},
	} {
		b, got := watchTexts(t, pipeline.View{FlipFlop: c.k, Confirm: c.confirm}, c.texts)
		if got != c.want {
			t.Errorf("flip_flop %d, confirm %d: %s made %s, want %s", c.k, c.confirm, c.texts, got, c.want)
		}
		if n := len(b.p.Documents[0].Changes); n > c.k {
			t.Errorf("flip_flop %d: %d texts are remembered", c.k, n)
		}
	}
}

func TestFlipFlopSaysWhy(t *testing.T) {
	b, _ := watchTexts(t, pipeline.View{FlipFlop: 2}, "A B A B")
	want := "the page has the text of version 2 again, which is not reported because of flip_flop: 2; version 3 stays current"
	if r := one[record](b); r.Result != flow.OutcomeRead || r.Reason != want || r.Class != "" {
		t.Errorf("got %+v", r)
	}
}

// TestFlipFlopAfterAnUpgrade: the current text keeps its place among the changes when new rules
// extract it; the others have hashes that no text gets any more.
func TestFlipFlopAfterAnUpgrade(t *testing.T) {
	d := Document{View: pipeline.View{FlipFlop: 3}, N: 3, Changes: []madeVersion{{2, "old B"}, {3, "old A"}}}
	d.rehashChanges("new A")
	if len(d.Changes) != 1 || d.Changes[0] != (madeVersion{3, "new A"}) {
		t.Errorf("got %+v", d.Changes)
	}
	d.N, d.TextHash = 4, "new C"
	if d.noteChange(0, "new C"); d.Changes != nil { // a new baseline
		t.Errorf("a baseline leaves %+v", d.Changes)
	}
}
