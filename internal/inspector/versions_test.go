package inspector_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/inspector"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/index"
)

// TestForgottenChanges stores more versions than changes are remembered.
func TestForgottenChanges(t *testing.T) {
	const page = "https://example.com/"
	s := newStore(t)
	now := func() time.Time { return s.now }
	s.stages[flow.TopicDocuments] = index.New(index.Config{Now: now, Steady: now, Keep: 30})
	s.subscribe(page, "legal", "lantern")
	for n := range 25 {
		if n > 0 {
			s.check(page)
		}
		s.read(fmt.Sprintf("A lantern of bronze costs %d drachmae", n) + strings.Repeat("\nA lantern", n%2))
	}
	h, err := inspector.Versions(t.Context(), s, page, inspect.DocumentFilter{})
	if err != nil || len(h.Versions) != 25 {
		t.Fatalf("got %d versions, %v", len(h.Versions), err)
	}
	for _, v := range h.Versions {
		switch {
		case v.N == 1:
			if !v.Baseline || v.Forgotten || v.Size != nil {
				t.Errorf("the baseline is %+v", v)
			}
		case v.Baseline || v.Size == nil || max(v.Size.Added, v.Size.Removed) != 3 || v.Size.Removed+v.Size.Added != 4:
			t.Errorf("version %d: %+v, size %+v", v.N, v, v.Size)
		case v.Forgotten != (v.N < 6) || (len(v.Matches) == 0) != v.Forgotten:
			t.Errorf("version %d: forgotten %v, notified %+v", v.N, v.Forgotten, v.Matches)
		}
	}
}

// TestHistoryElsewhere asks for a page of another process.
func TestHistoryElsewhere(t *testing.T) {
	const page = "https://example.com/"
	s := newStore(t)
	s.subscribe(page, "legal", "lantern")
	s.read("A lantern")
	s.foreign[page] = true
	for name, call := range map[string]func() error{
		"versions": func() error { _, err := inspector.Versions(t.Context(), s, page, inspect.DocumentFilter{}); return err },
		"text":     func() error { _, err := inspector.VersionText(s, page, 0, inspect.DocumentFilter{}); return err },
		"diff":     func() error { _, err := inspector.Diff(t.Context(), s, nil, page, inspect.DiffFilter{}); return err },
		"changes": func() error {
			_, err := inspector.Changes(t.Context(), s, nil, page, inspect.DocumentFilter{}, 0)
			return err
		},
		"occurrences": func() error {
			_, err := inspector.FindOccurrences(t.Context(), s, nil, text.NewLanguages(), page, "lantern", inspect.OccurrenceFilter{})
			return err
		},
	} {
		if err := call(); !errors.Is(err, inspect.ErrElsewhere) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestOccurrencesInVersions finds a word that comes, stays and goes, and repeats itself.
func TestOccurrencesInVersions(t *testing.T) {
	const page = "https://example.com/"
	s := newStore(t)
	s.subscribe(page, "legal", "lantern")
	for n, content := range []string{"Nothing yet\nΛύχνος", "A lantern\nΛύχνος", "First\nA lantern\nA lantern", "First\nLanterns, and a lantern of bronze"} {
		if n > 0 {
			s.check(page)
		}
		s.read(content)
	}
	find := func(term string, f inspect.OccurrenceFilter) string {
		o, err := inspector.FindOccurrences(t.Context(), s, nil, text.NewLanguages(), page, term, f)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, found := range o.Occurrences {
			line := found.Text + " |"
			for _, p := range found.Places {
				line += fmt.Sprintf(" v%d #%d %d-%d", p.Version, p.Position, p.Start, p.End)
			}
			all = append(all, line)
		}
		if o.Omitted > 0 {
			all = append(all, fmt.Sprint(o.Omitted))
		}
		return strings.Join(all, "\n")
	}
	for _, c := range []struct {
		term string
		f    inspect.OccurrenceFilter
		want string
	}{
		{"lantern", inspect.OccurrenceFilter{MatchCase: true}, "lantern | v4 #5 22-29\nlantern | v3 #3 8-15 v2 #2 2-9\nlantern | v3 #5 18-25"},
		{"Lantern", inspect.OccurrenceFilter{Stem: true, Version: 4}, "Lanterns | v4 #2 6-14\nlantern | v4 #5 22-29"},
		{"λύχνος", inspect.OccurrenceFilter{}, "Λύχνος | v2 #3 10-22 v1 #3 12-24"},
		{"a lantern", inspect.OccurrenceFilter{Limit: 1}, "a lantern | v4 #4 20-29\n3"},
		{"lantern bronze", inspect.OccurrenceFilter{Match: "terms", Version: 4}, "lantern | v4 #5 22-29\nbronze | v4 #7 33-39"},
		{"lantern bronze", inspect.OccurrenceFilter{}, ""},
	} {
		if got := find(c.term, c.f); got != c.want {
			t.Errorf("%s %+v: got\n%s\nwant\n%s", c.term, c.f, got, c.want)
		}
	}
}
