package match

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// TestConcurrentUse holds many changes in several languages, matched at once by one
// Matcher, against each matched alone.
func TestConcurrentUse(t *testing.T) {
	langs := text.NewLanguages()
	r := rand.New(rand.NewPCG(1, 2))
	var entries []Entry
	for i := range 50 {
		entries = append(entries, Entry{fmt.Sprint(i), someSubscription(r)})
	}
	var changes []*pipeline.Change
	var want [][]Match
	for i := range 60 {
		c, _ := changeOf(20, someGroups(r)...)
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
	if len(m.indexes) > len(m.parts)+maxIndexes {
		t.Errorf("%d indexes are kept", len(m.indexes))
	}
}

func TestNoSubscriptions(t *testing.T) {
	c, _ := changeOf(64, pairOf{new: "argus"})
	if got := NewMatcher(nil, text.NewLanguages()).Match(c); got != nil {
		t.Errorf("got %v", got)
	}
}

// TestKeysAreRare holds that a phrase is found by the pair that the fewest others have.
func TestKeysAreRare(t *testing.T) {
	var entries []Entry
	for i := range 100 {
		entries = append(entries, Entry{fmt.Sprint(i), kw(fmt.Sprintf("out of word%d", i), fmt.Sprintf("word%d", i))})
	}
	x := newIndex(entries, everyEntry(len(entries)), text.NewLanguages().Normalizer("en"))
	for k, ps := range x.postings {
		if len(ps) != 1 {
			t.Errorf("%d patterns have the key %v", len(ps), k)
		}
	}
}

func everyEntry(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
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
					s.Stem, s.FilterStopwords, s.IgnoreCase = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
				}
				entries[i] = Entry{fmt.Sprint(i), s}
			}
			var ws []byte
			for range 50 {
				ws = append(append(ws, word()...), ' ')
			}
			c, _ := changeOf(64, pairOf{old: "an old text that stays", new: "an old text that stays " + string(ws)})
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

// BenchmarkBuild indexes subscriptions of three keywords each.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{30, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			entries := make([]Entry, n)
			for i := range entries {
				entries[i] = Entry{fmt.Sprint(i), kw(fmt.Sprintf("word%d", i), fmt.Sprintf("out of word%d", i%100), "argus")}
			}
			norm := text.NewLanguages().Normalizer("en")
			all := everyEntry(n)
			for b.Loop() {
				newIndex(entries, all, norm)
			}
		})
	}
}
