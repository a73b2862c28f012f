package match

import (
	"cmp"
	"slices"

	"github.com/vokter/vokter/pipeline"
)

// maxDiffs is how many diffs a notification holds, if it has no more keywords than that.
const maxDiffs = 50

// report is one hit for one keyword.
type report struct {
	keyword int32
	*hit
}

// assemble returns what the findings say to s: wanted events only, in the order of the text,
// nothing twice, and no more than fits.
func assemble(s pipeline.Subscription, found []finding) (diffs []pipeline.Diff, truncated bool) {
	type kind struct {
		keyword int32
		side    int
	}
	var reports []report
	kinds := map[kind]bool{} // false: there is none among diffs yet
	for _, f := range found {
		for _, h := range f.hits {
			if s.Wants(events[h.side]) && (s.Moved || !h.moved) {
				reports = append(reports, report{f.keyword, h})
				kinds[kind{f.keyword, h.side}] = false
			}
		}
	}
	slices.SortFunc(reports, func(a, b report) int {
		return cmp.Or(inOrder(a.hit, b.hit), cmp.Compare(a.keyword, b.keyword))
	})
	seen := make(map[pipeline.Diff]bool, min(len(reports), 2*maxDiffs))
	var first []bool
	missing := len(kinds)
	for _, r := range reports {
		if missing == 0 && len(diffs) > max(maxDiffs, len(kinds)) {
			break // none of the others would be kept, and one of these is not
		}
		d := r.diff(s)
		same := d
		same.Offset = 0 // a reader cannot tell them apart
		if seen[same] {
			continue
		}
		seen[same] = true
		k := kind{r.keyword, r.side}
		diffs, first = append(diffs, d), append(first, !kinds[k])
		if !kinds[k] {
			kinds[k] = true
			missing--
		}
	}
	if len(diffs) <= maxDiffs {
		return diffs, false
	}
	return fit(diffs, first, len(kinds))
}

// fit keeps the first diff of each keyword and event, and as many others from the top as
// there is room for.
func fit(diffs []pipeline.Diff, first []bool, firsts int) ([]pipeline.Diff, bool) {
	room := max(maxDiffs-firsts, 0)
	var out []pipeline.Diff
	for i, d := range diffs {
		switch {
		case first[i]:
		case room > 0:
			room--
		default:
			continue
		}
		out = append(out, d)
	}
	return out, len(out) < len(diffs)
}

func (r report) diff(s pipeline.Subscription) pipeline.Diff {
	snippet := r.snippet(*s.SnippetOffset)
	return pipeline.Diff{
		Event: events[r.side], Keyword: s.Keywords[r.keyword], Text: r.text, Snippet: snippet,
		Offset: r.w.Offset + r.from,
	}
}
