package vokter

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
)

// Explaining a keyword takes several looks at a whole text. It must not take the time of
// those who watch, so it is done for one page at a time, for so many keywords, and none is
// begun after so long.
const (
	maxExplained = 1000
	explainFor   = 5 * time.Second
)

// keywords adds to e what became of each keyword that f selects in the last change of its
// document. st is the page's state in group index, records are its last changes.
func (r *Router) keywords(ctx context.Context, e *Explanation, st flow.State, records []match.ChangeRecord, f ExplainFilter) error {
	select {
	case r.explaining <- struct{}{}:
		defer func() { <-r.explaining }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	until := time.Now().Add(explainFor)
	documents := make(map[string]*lastChange)
	watched := f.Keyword == ""
	for _, s := range e.Page.Subscriptions {
		for i, keyword := range s.Keywords {
			if f.Keyword != "" && keyword != f.Keyword || slices.Contains(s.Keywords[:i], keyword) {
				continue
			}
			watched = true
			if len(e.Keywords) == maxExplained || len(e.Keywords) > 0 && time.Now().After(until) {
				e.Omitted++
				continue
			}
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			c := documents[s.Document]
			if c == nil {
				var err error
				if c, err = r.lastChange(e.Page, s.Document, st, records); err != nil {
					return err
				}
				documents[s.Document] = c
			}
			k := KeywordInfo{Client: s.Client, Document: s.Document, Keyword: keyword, Version: c.version}
			k.Why = c.whyNot(s, keyword)
			k.Matched = k.Why == ""
			e.Keywords = append(e.Keywords, k)
		}
	}
	if !watched {
		e.Keywords = append(e.Keywords, KeywordInfo{Client: f.Client, Keyword: f.Keyword, Why: "no subscription to this page has this keyword"})
	}
	return nil
}

// lastChange is what is known of the change that made the standing version of a document.
type lastChange struct {
	version uint64
	// explainer is nil where there was none, or where it cannot be made again; none says
	// why.
	explainer *match.Explainer
	none      string
	// matched are the keywords that it told clients of, as far as they were kept.
	matched map[[2]string]bool
}

// lastChange makes the change that led to the standing version again, from the stored ones.
func (r *Router) lastChange(page PageInfo, document string, st flow.State, records []match.ChangeRecord) (*lastChange, error) {
	c := &lastChange{matched: make(map[[2]string]bool)}
	for _, d := range page.Documents {
		if d.ID == document {
			c.version = d.Version
		}
	}
	if c.version == 0 {
		c.none = "no version of the document stands yet"
		return c, nil
	}
	changed := false
	for _, rec := range records {
		if rec.Document == document && rec.Version == c.version {
			changed = true
			for _, m := range rec.Matches {
				for _, k := range m.Keywords {
					c.matched[[2]string{m.Client, k}] = true
				}
			}
		}
	}
	stands, ok, err := loadText(st, document, c.version)
	if err != nil {
		return nil, err
	}
	before, had, err := loadText(st, document, c.version-1)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		c.none = fmt.Sprintf("version %d was replaced while this was looked at", c.version)
	case !had && changed:
		c.none = fmt.Sprintf("version %d is not kept any more, so that the change cannot be made again", c.version-1)
	case !had:
		c.none = fmt.Sprintf("version %d is the baseline, which tells nobody; nothing changed since", c.version)
	case before.Extractor != stands.Extractor:
		c.none = "the text is made by other rules since then, so that the change cannot be made again"
	default:
		change, _ := diff.ChangeOf(flow.Snapshot{
			Page: page.URL, Document: document, N: c.version, Previous: c.version - 1, Language: stands.Language,
			Title: stands.Title, Old: before.text, New: stands.text,
		})
		c.explainer = match.NewExplainer(&change, before.text, stands.text, r.languages)
	}
	return c, nil
}

// whyNot says why the change said nothing of a keyword of s; it is empty where it did.
func (c *lastChange) whyNot(s SubscriptionInfo, keyword string) string {
	switch {
	case c.matched[[2]string{s.Client, keyword}]:
		return ""
	case s.State == StateExpired:
		return "the subscription expired: " + s.Reason
	case c.explainer == nil:
		return c.none
	}
	return c.explainer.WhyNot(flow.Stamped{From: s.From, Until: pipeline.Forever, Subscription: s.Subscription}, keyword)
}

// textVersion is a stored version with its text.
type textVersion struct {
	index.StoredVersion
	text string
}

func loadText(st flow.State, document string, n uint64) (v textVersion, ok bool, err error) {
	if v.StoredVersion, ok, err = index.LoadVersion(st, document, n); err != nil || !ok {
		return v, false, err
	}
	if v.text, err = flow.UnpackText(v.Packed); err != nil {
		return v, false, pipeline.Broken(fmt.Errorf("version %d of a document: %w", n, err))
	}
	return v, true, nil
}
