package match_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/match"
)

// lines returns a text of blocks.
func lines(blocks ...string) string { return strings.Join(blocks, "\n") + "\n" }

// changeBetween returns the change between two texts.
func changeBetween(old, new string) *flow.Change {
	c, _ := diff.ChangeOf(flow.Snapshot{Page: "http://x/", N: 2, Previous: 1, Language: "en", Old: old, New: new})
	return &c
}

// matchedDiffs returns what c reports to s, each diff with its edit, and how many diffs were left out.
func matchedDiffs(c *flow.Change, s pipeline.Subscription) (said []string, omitted int) {
	for _, m := range match.NewMatcher([]match.Entry{{ID: "s", Subscription: s}}, text.NewLanguages()).Match(c) {
		for _, d := range m.Diffs {
			line := fmt.Sprintf("%d %s %q in %q at %d", d.Edit, d.Event, d.Text, d.Snippet, d.Offset)
			if d.Title != "" {
				line += " of " + d.Title
			}
			said = append(said, line)
		}
		omitted += m.Omitted
	}
	return said, omitted
}

func TestEveryChange(t *testing.T) {
	narrow := 5
	for _, tt := range []struct {
		name     string
		sub      pipeline.Subscription
		old, new string
		want     []string
	}{
		{"a price", pipeline.Subscription{}, lines("Shop", "Price: €10 now"), lines("Shop", "Price: €12 now"), []string{
			`1 removed "10" in "Price: €10 now" at 15`, `1 added "12" in "Price: €12 now" at 15`}},
		{"a price alone in its block", pipeline.Subscription{}, lines("Shop", "10", "end"), lines("Shop", "12", "end"), []string{
			`1 removed "10" in "10" at 5`, `1 added "12" in "12" at 5`}},
		{"two edits of one line", pipeline.Subscription{SnippetOffset: &narrow},
			lines("one two three four five six seven eight nine ten"), lines("ONE two three four five six seven eight nine TEN"), []string{
				`1 removed "one" in "one two ..." at 0`, `1 added "ONE" in "ONE two ..." at 0`,
				`2 removed "ten" in "... nine ten" at 45`, `2 added "TEN" in "... nine TEN" at 45`}},
		{"edits that are near are one", pipeline.Subscription{}, lines("a b c d e f"), lines("a X c Y e f"), []string{
			`1 removed "b c d" in "a b c d e f" at 2`, `1 added "X c Y" in "a X c Y e f" at 2`}},
		{"a removal before a change", pipeline.Subscription{}, lines("a x b y c d e f"), lines("a b z c d e f"), []string{
			`1 removed "x b y" in "a x b y c d e f" at 2`, `1 added "b z" in "a b z c d e f" at 2`}},
		{"only what was added", pipeline.Subscription{Events: []pipeline.Event{pipeline.Added}}, lines("Price 10", "gone for good"), lines("Price 12"),
			[]string{`1 added "12" in "Price 12" at 6`}},
		{"a block that moved", pipeline.Subscription{}, lines("one two", "three four", "five six"), lines("three four", "five six", "one two"), nil},
		{"a block that moved, on demand", pipeline.Subscription{Moved: true}, lines("one two", "three four", "five six"),
			lines("three four", "five six", "one two"), []string{`1 removed "one two" in "one two" at 0`, `2 added "one two" in "one two" at 20`}},
		{"too small", pipeline.Subscription{MinChange: pipeline.MinChange{Tokens: 2}}, lines("Price 10"), lines("Price 12"), nil},
		{"large enough", pipeline.Subscription{MinChange: pipeline.MinChange{Tokens: 1}}, lines("Price 10"), lines("Price 12"), []string{
			`1 removed "10" in "Price 10" at 6`, `1 added "12" in "Price 12" at 6`}},
		{"the same twice", pipeline.Subscription{}, lines("in stock", "x y z", "in stock"), lines("in transit", "x y z", "in transit"), []string{
			`1 removed "stock" in "in stock" at 3`, `1 added "transit" in "in transit" at 3`}},
		{"blocks that merge", pipeline.Subscription{}, lines("one two three", "four five six"), lines("one two three four five six"), nil},
		{"cells of a row", pipeline.Subscription{}, "\x02lamp\n10\n5 left\n\x03", "\x02lamp\n12\n7 left\n\x03", []string{
			`1 removed "10" in "lamp · 10 · 5 left" at 6 of lamp`, `1 added "12" in "lamp · 12 · 7 left" at 6 of lamp`, `2 removed "5" in "lamp · 10 · 5 left" at 9 of lamp`, `2 added "7" in "lamp · 12 · 7 left" at 9 of lamp`}},
		{"the same in two rows", pipeline.Subscription{Events: []pipeline.Event{pipeline.Added}},
			"\x02lamp\n5 left\n\x03\x02torch\n5 left\n\x03", "\x02lamp\n7 left\n\x03\x02torch\n7 left\n\x03", []string{
				`1 added "7" in "lamp · 7 left" at 6 of lamp`, `2 added "7" in "torch · 7 left" at 21 of torch`}},
	} {
		if got, omitted := matchedDiffs(changeBetween(tt.old, tt.new), tt.sub); !slices.Equal(got, tt.want) || omitted != 0 {
			t.Errorf("%s: got\n  %s\nwant\n  %s", tt.name, strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
		}
	}
}

func TestEveryChangeIsBounded(t *testing.T) {
	var old, new []string
	for i := range 60 {
		old = append(old, fmt.Sprintf("article %d costs %d", i, 1000+i))
		new = append(new, fmt.Sprintf("article %d costs %d", i, 2000+i))
	}
	got, omitted := matchedDiffs(changeBetween(lines(old...), lines(new...)), pipeline.Subscription{})
	if len(got) != 50 || omitted != 70 {
		t.Errorf("%d diffs, and %d were left out; want 50 and 70", len(got), omitted)
	}
	long := strings.Repeat("word ", 1000)
	for _, m := range match.NewMatcher([]match.Entry{{}}, text.NewLanguages()).Match(changeBetween(lines("a"), lines("a", long))) {
		if n := len(m.Diffs[0].Text); n < 2000 || n > 2048 || !strings.HasPrefix(m.Diffs[0].Text, "word word") {
			t.Errorf("a long text has %d bytes", n)
		}
	}
	// So much changed that the groups are coarse.
	old, new = old[:0], new[:0]
	for i := range 60_000 {
		old, new = append(old, fmt.Sprintf("old%d", i)), append(new, fmt.Sprintf("new%d", i))
	}
	c := changeBetween(lines(old...), lines(new...))
	got, omitted = matchedDiffs(c, pipeline.Subscription{Events: []pipeline.Event{pipeline.Added}})
	if !c.Groups[0].Coarse || len(got) != 50 || got[0] != `1 added "new0" in "new0" at 0` || omitted != 60_000-50 {
		t.Errorf("coarse %v: %d diffs, %d left out, the first %q", c.Groups[0].Coarse, len(got), omitted, got[:1])
	}
}

// TestEveryChangeBesideKeywords: each subscription of a document gets its own, also those of a large
// table.
func TestEveryChangeBesideKeywords(t *testing.T) {
	entries := []match.Entry{
		{ID: "price", Subscription: pipeline.Subscription{Keywords: []string{"price 12"}, MatchCase: true}},
		{ID: "every"},
		{ID: "none", Subscription: pipeline.Subscription{Keywords: []string{"zeus"}}},
	}
	var got []string
	for _, m := range match.NewMatcher(entries, text.NewLanguages()).Match(changeBetween(lines("Price 10", "price 11"), lines("Price 12", "price 12"))) {
		got = append(got, fmt.Sprint(m.ID, len(m.Diffs)))
	}
	if want := []string{"price1", "every4"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhyNoChange(t *testing.T) {
	for _, tt := range []struct {
		sub      pipeline.Subscription
		old, new string
		want     string
	}{
		{pipeline.Subscription{}, lines("Price 10"), lines("Price 12"), ""},
		{pipeline.Subscription{MinChange: pipeline.MinChange{Tokens: 3}}, lines("Price 10"), lines("Price 12"),
			"the change is too small: 1 changed token, and min_change asks for 3"},
		{pipeline.Subscription{Events: []pipeline.Event{pipeline.Removed}}, lines("Price"), lines("Price 12"),
			"nothing was removed, and the subscription asks only for what is removed"},
		{pipeline.Subscription{}, lines("one two", "three four", "five six"), lines("three four", "five six", "one two"),
			"text only moved to another place; moved: true would report it"},
		{pipeline.Subscription{}, lines("one two three", "four five six"), lines("one two three four five six"),
			"the two versions have the same words; only the borders of paragraphs changed"},
	} {
		e := match.NewExplainer(changeBetween(tt.old, tt.new), tt.old, tt.new, text.NewLanguages())
		if got := e.WhyNot(flow.Stamped{Until: flow.Forever, Subscription: tt.sub}, ""); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestVeryLongWords: a word of any length makes neither a text nor a snippet long, and leaves room for
// other diffs.
func TestVeryLongWords(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 20_000)
	rule := strings.Repeat("=", 300_000)
	for name, tt := range map[string]struct {
		keywords []string
		added    []string
		want     []string // how the texts begin
	}{
		"beside a keyword":         {[]string{"argus", "zeus"}, []string{"argus " + long + " x", "x " + long + " argus", "zeus"}, []string{"argus", "argus", "zeus"}},
		"a word alone":             {nil, []string{long, strings.Repeat("é", 100_001), "zeus"}, []string{"0123", "éé", "zeus"}},
		"a rule between two words": {[]string{"argus panoptes"}, []string{"argus " + rule + " panoptes"}, []string{"argus ==="}},
	} {
		t.Run(name, func(t *testing.T) {
			c := changeBetween(lines("base"), lines(append([]string{"base"}, tt.added...)...))
			found := match.NewMatcher([]match.Entry{{ID: "s", Subscription: pipeline.Subscription{Keywords: tt.keywords}}}, text.NewLanguages()).Match(c)
			if len(found) != 1 || len(found[0].Diffs) != len(tt.want) || found[0].Omitted > 0 {
				t.Fatalf("got %d matches, want 1 with %d diffs", len(found), len(tt.want))
			}
			for i, d := range found[0].Diffs {
				if !strings.HasPrefix(d.Text, tt.want[i]) || len(d.Text) > 2048 || len(d.Snippet) > 3000 || !strings.Contains(d.Snippet, d.Text) {
					t.Errorf("got a text of %d bytes, %.20q, in a snippet of %d; want %q", len(d.Text), d.Text, len(d.Snippet), tt.want[i])
				}
			}
		})
	}
}
