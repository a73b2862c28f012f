package inspector

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
)

// compareBytesPerByte is how many bytes of memory it takes to compare two texts, for each of their bytes.
const compareBytesPerByte = 128

// Diff compares two versions of a document of the page of url, as the pipeline does: blocks that
// belong together are in one Row, and differences are runs of words. Of a feed whose items are
// watched, two successive versions show only what was new. Memory bounds the memory for large texts;
// nil means no bound. Diff fails like [Versions], and with a *flow.Refusal of CodeNotFound where one
// of the versions is not stored.
func Diff(ctx context.Context, s Store, memory flow.Memory, url string, f inspect.DiffFilter) (inspect.Difference, error) {
	out := inspect.Difference{Rows: []inspect.Row{}}
	d, err := openDocument(s, url, f.DocumentFilter)
	if err != nil {
		return out, err
	}
	out.URL, out.Document = d.page.URL, d.ID
	f.To = cmp.Or(f.To, d.N)
	to, err := d.loadVersion(f.To)
	if err != nil {
		return out, err
	}
	if f.From == 0 {
		f.From = cmp.Or(to.Previous, f.To-1)
		if _, kept, err := index.LoadVersion(d.state, d.ID, f.From); err != nil {
			return out, err
		} else if !kept {
			return out, &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("%s has no version before version %d to compare it with", d.page.URL, f.To)}
		}
	}
	from, err := d.loadVersion(f.From)
	if err != nil {
		return out, err
	}
	old, oldKeys := from.text, flow.UnpackKeys(from.Packed)
	if to.Base != nil && f.From == to.Previous {
		if old, oldKeys, _, err = to.OldText(d.state, d.ID); err != nil {
			return out, err
		}
	}
	free, err := memory.Take(ctx, compareBytesPerByte*int64(len(old)+len(to.text)))
	if err != nil {
		return out, err
	}
	defer free()
	if out.From, err = describeVersion(f.From, from.StoredVersion); err != nil {
		return out, err
	}
	if out.To, err = describeVersion(f.To, to.StoredVersion); err != nil {
		return out, err
	}
	out.Rows, out.Size = diff.Rows(d.analyzeText(old, oldKeys), d.analyzeText(to.text, flow.UnpackKeys(to.Packed)))
	if f.Context >= 0 {
		out.Rows = diff.Around(out.Rows, f.Context)
	}
	if f.To == d.N {
		out.Proposals, err = wantedProposals(ctx, d.state, d.page, d.Document, d.subs)
	}
	return out, err
}

// Changes compares the stored versions of a document of the page of url again and returns the
// changes, as the pipeline published them, or the last so many of them; with 0 all. Incarnation and Stamp are left out.
// Memory bounds the memory for large texts; nil means no bound. Changes fails like [Versions].
func Changes(ctx context.Context, s Store, memory flow.Memory, url string, f inspect.DocumentFilter, last int) (inspect.ChangeHistory, error) {
	h := inspect.ChangeHistory{Changes: []flow.Change{}}
	d, err := openDocument(s, url, f)
	if err != nil {
		return h, err
	}
	h.URL, h.Document = d.page.URL, d.ID
	numbers, err := index.KeptVersions(d.state, d.ID)
	if err != nil {
		return h, err
	}
	h.Versions = len(numbers)
	for _, n := range numbers {
		if last > 0 && len(h.Changes) == last {
			break
		}
		v, ok, err := index.LoadVersion(d.state, d.ID, n)
		if err != nil {
			return h, err
		}
		if !ok {
			h.Versions-- // dropped meanwhile
			continue
		}
		c, ok, err := d.compareWithPrevious(ctx, memory, n, v)
		if err != nil {
			return h, err
		}
		if ok {
			h.Changes = append(h.Changes, c)
		}
	}
	slices.Reverse(h.Changes)
	h.Proposals, err = proposalsFor(ctx, d.state, d.page, d.Document)
	return h, err
}

// compareWithPrevious returns the change that made v, version n. ok is false where there is none, or the version
// before is not stored.
func (d storedDocument) compareWithPrevious(ctx context.Context, memory flow.Memory, n uint64, v index.StoredVersion) (c flow.Change, ok bool, err error) {
	if v.Previous == 0 {
		return c, false, nil
	}
	free, err := memory.Take(ctx, compareBytesPerByte*2*flow.UnpackedSize(v.Packed))
	if err != nil {
		return c, false, err
	}
	defer free()
	snapshot, ok, err := index.SnapshotOf(d.state, &d.page, &d.Document, n)
	if err != nil || !ok {
		return c, false, err
	}
	c, ok = diff.ChangeOf(snapshot)
	return c, ok, context.Cause(ctx)
}

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

// PreviewOf returns the preview of s for an outcome that was just read. It fails where the outcome
// is damaged.
func PreviewOf(o flow.Outcome, s pipeline.Subscription, languages *text.Languages, source bool) (inspect.Preview, error) {
	p := inspect.Preview{URL: o.Page, Title: o.Title, Passed: o.Passed, Places: []inspect.Place{}}
	var err error
	if p.Text, err = flow.UnpackText(o.Packed); err != nil {
		return p, err
	}
	p.Language = cmp.Or(s.Language, o.Language, text.Detect(p.Text), text.DefaultLanguage)
	if b := o.Body; b != nil {
		p.URL, p.ContentType = b.URL, b.ContentType
		if source {
			if p.Source, err = flow.UnpackText(b.Packed); err != nil {
				return p, err
			}
		}
	}
	for _, k := range s.Keywords {
		match.Occurrences(p.Text, p.Language, k, s, languages, func(o match.Occurrence) bool {
			p.Places = append(p.Places, inspect.Place{Position: o.Position, Start: o.Start, End: o.End})
			return len(p.Places) < inspect.MaxOccurrences
		})
	}
	return p, nil
}
