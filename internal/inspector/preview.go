package inspector

import (
	"cmp"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/match"
)

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
