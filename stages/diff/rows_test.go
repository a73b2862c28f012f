package diff

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// TestRowsAgreeWithDiff compares random texts: the rows hold every block of both texts once, at its
// offset, and what they mark is as much as Diff finds.
func TestRowsAgreeWithDiff(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("a lantern of bronze made in the workshop by harbour which burns for eight hours Zeus zeus Hera café")
	make := func() string {
		var b strings.Builder
		for range random.IntN(12) {
			for range 1 + random.IntN(9) {
				b.WriteString(words[random.IntN(len(words))] + []string{" ", ", ", "  "}[random.IntN(3)])
			}
			b.WriteString([]string{"\n", "\n\n", "\x03", "\x02"}[random.IntN(4)])
		}
		return b.String()
	}
	edit := func(s string) string {
		blocks := strings.SplitAfter(s, "\n")
		for range random.IntN(4) {
			i, j := random.IntN(len(blocks)), random.IntN(len(blocks))
			switch random.IntN(4) {
			case 0:
				blocks[i], blocks[j] = blocks[j], blocks[i]
			case 1:
				blocks[i] = make()
			case 2:
				blocks[i] = strings.TrimSuffix(blocks[i], "\n") + " "
			default:
				blocks[i] = strings.Replace(blocks[i], " ", " "+words[random.IntN(len(words))]+" ", 1)
			}
		}
		return strings.Join(blocks, "")
	}
	for range 500 {
		before := make()
		old, new := text.Analyze(before), text.Analyze(edit(before))
		rows, size := Rows(old, new)
		if want := changeSize(old, new, Diff(old, new)); size != want {
			t.Fatalf("%q, %q: size %+v, but Diff finds %+v", old.Content, new.Content, size, want)
		}
		for side, doc := range []*text.Doc{old, new} {
			var offsets []int
			for _, r := range rows {
				for _, l := range [][]flow.Line{r.Old, r.New}[side] {
					content := ""
					for _, s := range l.Segments {
						content += s.Text
					}
					if !strings.HasPrefix(doc.Content[l.Offset:], content) || content == "" {
						t.Fatalf("%q: a row holds %q at %d", doc.Content, content, l.Offset)
					}
					offsets = append(offsets, l.Offset)
				}
			}
			seen := map[int]bool{}
			for _, o := range offsets {
				seen[o] = true
			}
			if len(offsets) != len(doc.Blocks) || len(seen) != len(doc.Blocks) {
				t.Fatalf("%q: %d of %d blocks in the rows, %d different ones", doc.Content, len(offsets), len(doc.Blocks), len(seen))
			}
		}
		if around := Around(rows, len(rows)); size.Changed(true) > 0 && len(around) != len(rows) {
			t.Fatalf("%d of %d rows around the changes", len(around), len(rows))
		}
	}
}

// TestRowsOfHugeTexts checks that a change beyond the limits is shown block by block.
func TestRowsOfHugeTexts(t *testing.T) {
	var old, new strings.Builder
	for i := range 60_000 {
		old.WriteString("old " + strings.Repeat("x", i%7+1) + "\n")
		new.WriteString("new " + strings.Repeat("y", i%5+1) + "\n")
	}
	a, b := text.Analyze("same\n"+old.String()), text.Analyze("same\n"+new.String())
	rows, size := Rows(a, b)
	if len(rows) != 120_001 || rows[0].Kind != flow.RowKept || size != changeSize(a, b, Diff(a, b)) {
		t.Errorf("%d rows, the first one %s, size %+v", len(rows), rows[0].Kind, size)
	}
	if got := Around(rows[:1], 3); len(got) != 1 || got[0].Skipped != 1 {
		t.Errorf("without a change: %+v", got)
	}
}

// TestOtherLink: rows say where another link makes two items of one, or does not.
func TestOtherLink(t *testing.T) {
	doc := func(ids []uint64, items ...string) *text.Doc {
		var content strings.Builder
		var keys []pipeline.Key
		for i, item := range items {
			content.WriteString(string(pipeline.ItemStart) + item + "\n" + string(pipeline.ItemEnd))
			keys = append(keys, pipeline.KeyOf(1, ids[i]))
		}
		return text.AnalyzePacked(content.String(), keys, nil)
	}
	same := []string{"alpha one two", "beta three four", "gamma five six", "delta seven eight"}
	for name, tt := range map[string]struct {
		old, new *text.Doc
		want     string
	}{
		"another release": {doc([]uint64{1}, "Release 1.2.3 is out"), doc([]uint64{2}, "Release 1.2.4 is out"),
			"removed: another item: its link changed, added: another item: its link changed"},
		"the same words":  {doc([]uint64{1, 2, 3, 4}, same...), doc([]uint64{1, 2, 3, 9}, same...), "kept: the same item: only its link changed"},
		"the same link":   {doc([]uint64{1}, "Release 1.2.3 is out"), doc([]uint64{1}, "Release 1.2.4 is out"), ""},
		"one that is new": {doc([]uint64{1}, "alpha one two"), doc([]uint64{1, 2}, "alpha one two", "beta three four"), ""},
	} {
		rows, _ := Rows(tt.old, tt.new)
		var got []string
		for _, r := range rows {
			if about := r.AboutLink(); about != "" {
				got = append(got, r.Kind+": "+about)
			}
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestSize(t *testing.T) {
	const long = "Zeus rules the sky and throws bolts of lightning at those who break their oaths\n"
	const other = "Hera keeps a garden with golden apples far in the west beyond the river Okeanos\n"
	for name, c := range map[string]struct {
		old, new string
		limits   limits
		want     flow.Size
	}{
		"one word replaced":         {"Zeus is in stock\n", "Zeus is out stock\n", defaultLimits, flow.Size{Removed: 1, Added: 1, Old: 4, New: 4}},
		"words added":               {"Zeus is here\n", "Zeus is here at last today\n", defaultLimits, flow.Size{Added: 3, Old: 3, New: 6}},
		"two paragraphs":            {"Zeus one\nHera two\n", "Zeus three\nHera\n", defaultLimits, flow.Size{Removed: 2, Added: 1, Old: 4, New: 3}},
		"only spacing":              {"Zeus  is here\n", "Zeus is here\n", defaultLimits, flow.Size{Old: 3, New: 3}},
		"a paragraph moved":         {long + other, other + long, defaultLimits, flow.Size{Moved: 15, Old: 30, New: 30}},
		"too much to find the rest": {long + other, other + "Argus\n", limits{}, flow.Size{Removed: 15, Added: 1, Old: 30, New: 16}},
	} {
		old, new := text.Analyze(c.old), text.Analyze(c.new)
		groups, _ := diffWithin(old, new, c.limits)
		if got := changeSize(old, new, groups); got != c.want {
			t.Errorf("%s: got %+v, want %+v of %+v", name, got, c.want, groups)
		}
	}
}
