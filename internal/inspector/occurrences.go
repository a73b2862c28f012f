package inspector

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
)

// FindOccurrences returns where the stored versions of a document of the page of url contain term, a
// word or a phrase. If its words may be in any order, each of them is an occurrence. The occurrences
// of the newest version come first, in the order of its text. FindOccurrences fails like [Versions],
// with a *flow.Refusal of CodeNotFound where a version is not stored, and with a
// *pipeline.FieldError where term or a field of f is invalid. Memory bounds the memory for large texts;
// nil means no bound.
func FindOccurrences(ctx context.Context, s Store, memory flow.Memory, languages *text.Languages, url, term string, f inspect.OccurrenceFilter) (inspect.Occurrences, error) {
	out := inspect.Occurrences{Term: term, Versions: []uint64{}, Occurrences: []inspect.Occurrence{}}
	sub := pipeline.Subscription{
		URL: url, Sinks: []string{"none"}, Keywords: []string{term}, MatchCase: f.MatchCase, IgnoreDiacritics: f.IgnoreDiacritics, Stem: f.Stem,
		FilterStopwords: f.FilterStopwords, Match: f.Match, Language: f.Language, SnippetOffset: f.SnippetOffset,
	}
	if err := validate(f, sub); err != nil {
		return out, err
	}
	d, err := openDocument(s, url, f.DocumentFilter)
	if err != nil {
		return out, err
	}
	out.URL, out.Document = d.page.URL, d.ID
	numbers, err := index.KeptVersions(d.state, d.ID)
	if err != nil {
		return out, err
	}
	if f.Version > 0 {
		numbers = []uint64{f.Version}
	}
	limit := cmp.Or(f.Limit, inspect.MaxOccurrences)
	known := make(map[occurrenceKey]int) // the index in out.Occurrences
	for _, n := range numbers {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		v, err := d.loadVersion(n)
		if err != nil {
			if f.Version == 0 && n < d.N {
				continue // dropped meanwhile
			}
			return out, err
		}
		out.Versions = append(out.Versions, n)
		times := make(map[occurrenceKey]int)
		free, err := memory.Take(ctx, compareBytesPerByte*int64(len(v.text)))
		if err != nil {
			return out, err
		}
		match.Occurrences(v.text, v.Language, term, sub, languages, func(o match.Occurrence) bool {
			look := occurrenceKey{text: o.Text, snippet: o.Snippet}
			look.nth = times[look]
			times[occurrenceKey{text: o.Text, snippet: o.Snippet}]++
			i, ok := known[look]
			switch {
			case !ok && len(out.Occurrences) == limit:
				out.Omitted++
				return ctx.Err() == nil
			case !ok:
				i = len(out.Occurrences)
				known[look] = i
				out.Occurrences = append(out.Occurrences, inspect.Occurrence{Text: o.Text, Snippet: o.Snippet})
			}
			at := &out.Occurrences[i]
			at.Places = append(at.Places, inspect.Place{Version: n, Position: o.Position, Start: o.Start, End: o.End})
			return ctx.Err() == nil
		})
		free()
	}
	return out, nil
}

// occurrenceKey tells occurrences apart: by their text and snippet, and those that have both in common
// within a version by their number.
type occurrenceKey struct {
	text, snippet string
	nth           int
}

// validate returns the mistakes in f and in s, the subscription with its fields, or nil.
func validate(f inspect.OccurrenceFilter, s pipeline.Subscription) error {
	term := s.Keywords[0]
	if err := text.ValidKeyword(term); err != nil {
		return &pipeline.FieldError{Field: "term", Reason: err.Error()}
	}
	if f.Limit < 0 || f.Limit > inspect.MaxOccurrences {
		return &pipeline.FieldError{Field: "limit", Reason: fmt.Sprintf("%d is not between 1 and %d", f.Limit, inspect.MaxOccurrences)}
	}
	return s.Validate()
}
