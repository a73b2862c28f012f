package match

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// maxDiffs is how many diffs a notification has at most, unless it has more keywords.
const maxDiffs = 50

// envelope is what the JSON of a notification needs besides its diffs, its URL, its title and
// its client, in bytes.
const envelope = 2 << 10

// report is one hit for one keyword. first says that it is the first of its keyword and event.
type report struct {
	keyword int32
	*hit
	first bool
}

// kind is a keyword together with an event.
type kind struct {
	keyword int32
	side    int
}

// assemble returns what the findings say to s about a page with that title: only the events that
// s wants, in the order of the text, nothing twice, and no more than a notification may have. It
// also returns how many diffs it left out.
func assemble(s pipeline.Subscription, title string, found []finding) (diffs []pipeline.Diff, omitted int) {
	reports, more := wanted(s, found)
	kinds := 0
	for _, r := range reports {
		if r.first {
			kinds++
		}
	}
	room := pipeline.MaxNotification - envelope - jsonSize(s.URL) - jsonSize(title) - jsonSize(s.Client)
	kept := make(map[int]pipeline.Diff, min(len(reports), max(maxDiffs, kinds)))
	keep := func(i int) bool {
		d := reports[i].diff(s)
		n := jsonSize(d.Keyword) + jsonSize(d.Text) + jsonSize(d.Snippet) + len(`{"event":"removed","keyword":"","text":"","snippet":"","offset":},`) + len("1000000")
		if n > room && len(kept) > 0 {
			return false
		}
		room -= n
		kept[i] = d
		return true
	}
	// The first diff of each keyword and event has precedence.
	others := max(maxDiffs-kinds, 0)
	full := false
	for i := 0; i < len(reports) && !full; i++ {
		full = reports[i].first && !keep(i)
	}
	for i := 0; i < len(reports) && !full && others > 0; i++ {
		if !reports[i].first {
			full = !keep(i)
			others--
		}
	}
	for i := range reports {
		if d, ok := kept[i]; ok {
			diffs = append(diffs, d)
		}
	}
	return diffs, len(reports) - len(diffs) + more
}

// wanted returns the hits that s wants to know of, in the order of the text and without those
// that a reader cannot tell apart, and how many more there are that the search has only counted.
func wanted(s pipeline.Subscription, found []finding) (reports []report, more int) {
	for _, f := range found {
		for _, h := range f.list {
			if s.Wants(events[h.side]) && (s.Moved || !h.moved) {
				reports = append(reports, report{keyword: f.keyword, hit: h})
			}
		}
		for side, n := range f.more {
			if s.Wants(events[side]) {
				more += n.edited
				if s.Moved {
					more += n.moved
				}
			}
		}
	}
	slices.SortFunc(reports, func(a, b report) int {
		return cmp.Or(inOrder(a.hit, b.hit), cmp.Compare(a.keyword, b.keyword))
	})
	type look struct {
		keyword string
		side    int
		sum     uint64
	}
	seen := make(map[look]bool, len(reports))
	begun := make(map[kind]bool)
	distinct := reports[:0]
	for _, r := range reports {
		l := look{s.Keywords[r.keyword], r.side, r.sum(*s.SnippetOffset)}
		if seen[l] {
			continue
		}
		seen[l] = true
		k := kind{r.keyword, r.side}
		r.first = !begun[k]
		begun[k] = true
		distinct = append(distinct, r)
	}
	return distinct, more
}

func (r report) diff(s pipeline.Subscription) pipeline.Diff {
	return pipeline.Diff{
		Event: events[r.side], Keyword: s.Keywords[r.keyword], Text: r.text, Snippet: r.snippet(*s.SnippetOffset),
		Offset: r.w.Offset + r.from,
	}
}

// jsonSize is how many bytes s takes at most in JSON, without its quotes.
func jsonSize(s string) int {
	n := len(s)
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError {
			n += len(`\u0000`) - 1
		}
	}
	return n
}
