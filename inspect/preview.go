package inspect

import (
	"cmp"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/match"
)

// Preview is a page as it is now, with the text that a subscription would watch.
type Preview struct {
	URL         string `json:"url"` // where the page came from after redirects
	Title       string `json:"title,omitempty"`
	Language    string `json:"language,omitempty"` // a BCP 47 tag
	ContentType string `json:"contentType,omitempty"`
	Text        string `json:"text"`
	// Passed says what of the page was passed over because it is not valid.
	Passed []string `json:"passed,omitempty"`
	// Places are where Text contains the keywords, at most MaxOccurrences, in the order of the keywords.
	// Field Version is 0.
	Places []Place `json:"places"`
	// Source is the body of the page, decoded, where it was asked for and is small enough to be stored.
	Source string `json:"source,omitempty"`
}

// PreviewOf returns the preview of s for an outcome that was just read. It fails where the outcome
// is damaged.
func PreviewOf(o flow.Outcome, s pipeline.Subscription, languages *text.Languages, source bool) (Preview, error) {
	p := Preview{URL: o.Page, Title: o.Title, Passed: o.Passed, Places: []Place{}}
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
			p.Places = append(p.Places, Place{Position: o.Position, Start: o.Start, End: o.End})
			return len(p.Places) < MaxOccurrences
		})
	}
	return p, nil
}
