package match

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// TestConcurrentUse holds many changes in several languages, matched at once by one
// Matcher, against each matched alone.
func TestConcurrentUse(t *testing.T) {
	langs := text.NewLanguages()
	r := rand.New(rand.NewPCG(1, 2))
	var entries []Entry
	for i := range 50 {
		entries = append(entries, Entry{fmt.Sprint(i), randomSubscription(r)})
	}
	var changes []*flow.Change
	var want [][]Match
	for i := range 60 {
		c, _ := changeOf(20, randomGroups(r)...)
		c.Language = []string{"en", "", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "fi", "tr"}[i%12]
		changes = append(changes, c)
		want = append(want, NewMatcher(entries, langs).Match(c))
	}
	m := NewMatcher(entries, langs)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range changes {
				k := (i + g*17) % len(changes)
				if got := m.Match(changes[k]); !reflect.DeepEqual(got, want[k]) {
					t.Errorf("change %d: got %v, want %v", k, got, want[k])
				}
			}
		})
	}
	wg.Wait()
	if len(m.indexes) > maxIndexes {
		t.Errorf("%d indexes are kept", len(m.indexes))
	}
}

func TestNoSubscriptions(t *testing.T) {
	c, _ := changeOf(64, groupTexts{new: "argus"})
	if got := NewMatcher(nil, text.NewLanguages()).Match(c); got != nil {
		t.Errorf("got %v", got)
	}
}

// TestKeysAreRare holds that a phrase is found by the pair that the fewest others have.
func TestKeysAreRare(t *testing.T) {
	x := newPatternIndex(text.NewLanguages().Normalizer("en"))
	for i := range 100 {
		x.add(int32(i), keywords(fmt.Sprintf("out of word%d", i), fmt.Sprintf("word%d", i)))
	}
	for k, list := range x.postings {
		if list.count != 1 {
			t.Errorf("%d patterns have the key %v", list.count, k)
		}
	}
}

// BenchmarkMatch matches a change of 50 tokens, of which few are keywords. What it costs must
// not grow with the number of subscriptions.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(3, 4))
			word := func() string { return fmt.Sprintf("w%d", r.IntN(20*n)) }
			entries := make([]Entry, n)
			for i := range entries {
				s := pipeline.Subscription{Keywords: []string{word(), word() + " " + word(), word() + " " + word() + " " + word()}}
				if i%2 == 0 {
					s.Stem, s.FilterStopwords, s.MatchCase = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
				}
				entries[i] = Entry{fmt.Sprint(i), s}
			}
			var ws []byte
			for range 50 {
				ws = append(append(ws, word()...), ' ')
			}
			c, _ := changeOf(64, groupTexts{old: "an old text that stays", new: "an old text that stays " + string(ws)})
			m := NewMatcher(entries, text.NewLanguages())
			hits := len(m.Match(c)) // builds the index
			b.ReportAllocs()
			for b.Loop() {
				m.Match(c)
			}
			b.ReportMetric(float64(hits), "hits")
		})
	}
}

// fineGroup returns the coarse group g as a group of windows, one for each block.
func fineGroup(g flow.Group) flow.Group {
	fine := flow.Group{Moved: g.Moved}
	for side, s := range stretches(&g) {
		to := []*[]flow.Window{oldSide: &fine.Old, newSide: &fine.New}[side]
		at := 0
		for block := range strings.SplitSeq(s.Text, "\n") {
			w := flow.Window{Offset: s.Offset + at, Text: block}
			for _, t := range text.Tokens(block) {
				w.Tokens = append(w.Tokens, flow.Span{t.Start, t.End})
			}
			w.Edits = []flow.Span{{0, len(w.Tokens)}}
			*to = append(*to, w)
			at += len(block) + 1
		}
	}
	return fine
}

// TestCoarseGroups: a coarse group says the same as one with a window for each of its blocks.
func TestCoarseGroups(t *testing.T) {
	words := []string{"god", "gods", "God", "house", "of", "the", "argus", "x"}
	hits := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 4))
		phrase := func(n int) string {
			out := make([]string, 1+r.IntN(n))
			for i := range out {
				out[i] = words[r.IntN(len(words))]
			}
			return strings.Join(out, " ")
		}
		stretch := func() string {
			blocks := make([]string, 1+r.IntN(4))
			for i := range blocks {
				blocks[i] = phrase(6)
			}
			return strings.Join(blocks, "\n")
		}
		changed := flow.Group{Coarse: true, Differences: []flow.Difference{
			{Event: pipeline.Removed, Text: stretch(), Offset: 7}, {Event: pipeline.Removed, Text: stretch(), Offset: 900},
			{Event: pipeline.Added, Text: stretch(), Offset: 3}, {Event: pipeline.Added, Text: stretch(), Offset: 800},
		}}
		went := stretch()
		moved := flow.Group{Coarse: true, Moved: true, Old: []flow.Window{{Offset: 400, Text: went}}, New: []flow.Window{{Offset: 500, Text: went}}}
		var subs []Entry
		for i := range 4 {
			s := keywords(phrase(3), phrase(2))
			s.Stem, s.FilterStopwords, s.Moved, s.MatchCase = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
			if r.IntN(2) == 0 {
				s.Match = pipeline.MatchTerms
			}
			subs = append(subs, Entry{fmt.Sprint(i), s})
		}
		m := NewMatcher(subs, text.NewLanguages())
		got := m.Match(&flow.Change{Language: "en", Groups: []flow.Group{changed, moved}})
		want := m.Match(&flow.Change{Language: "en", Groups: []flow.Group{fineGroup(changed), fineGroup(moved)}})
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %+v\ngot  %+v\nwant %+v", seed, subs, got, want)
		}
		hits += len(got)
	}
	if hits == 0 {
		t.Error("no keyword was found in any group")
	}
}

// TestCoarseCounts: a keyword is new where what was added holds more of it than what was removed.
func TestCoarseCounts(t *testing.T) {
	g := flow.Group{Coarse: true, Differences: []flow.Difference{
		{Event: pipeline.Removed, Text: "left gone\nequal here"},
		{Event: pipeline.Added, Text: "came more\ncame again\nequal there"},
	}}
	ms := NewMatcher([]Entry{{"s", keywords("came", "gone", "equal", "gone equal", "more came")}}, text.NewLanguages()).Match(&flow.Change{Groups: []flow.Group{g}})
	if len(ms) != 1 {
		t.Fatalf("got %+v", ms)
	}
	var got []string
	for _, d := range ms[0].Diffs {
		got = append(got, fmt.Sprintf("%s %s: %s", d.Event, d.Keyword, d.Text))
	}
	if want := []string{"removed gone: left gone", "added came: came more", "added came: came again"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCoarseFilter: the filter that is kept with a table passes over no keyword of a coarse group.
func TestCoarseFilter(t *testing.T) {
	g := flow.Group{Coarse: true, Differences: []flow.Difference{{Event: pipeline.Added, Text: "one\nneedle"}}}
	langs := text.NewLanguages()
	for keyword, want := range map[string]bool{"needle": true, "absent": false} {
		m := NewMatcher([]Entry{{"s", keywords(keyword)}}, langs)
		f := m.index("").buildFilter("test")
		if got := f.mayMatch(&flow.Change{Groups: []flow.Group{g}}, langs); got != want {
			t.Errorf("%q: may touch %v, want %v", keyword, got, want)
		}
	}
}
