package render

import (
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
)

// maxLooks is the largest number of spans of a line about an edit, after Looks has joined them.
const maxLooks = 7

// countedLine is a line of a Message, made of one or more diffs.
type countedLine struct {
	line  Line
	diffs int // how many of the diffs it is
}

// editLine returns the line for the edit at the beginning of diffs, which have no keyword. If removed
// text and the added text in its place both fit into a line, it is the whole edit, else the first diff of
// it.
func editLine(diffs []pipeline.Diff, r rows, b Budget) countedLine {
	if beginsReplacement(diffs) {
		if spans := replacementSpans(diffs[0], diffs[1], r, b); spans != nil {
			return countedLine{Line{Spans: spans}, 2}
		}
	}
	d := difference{Diff: diffs[0], row: r.rowPrefix(diffs[0])}
	d.snippet, d.changeStart, d.changeEnd = splitSnippet(d.Diff)
	d.fitExcerpt(b)
	return countedLine{d.line(), 1}
}

// beginsReplacement reports whether diffs begin with a removed text and the added text in its place.
func beginsReplacement(diffs []pipeline.Diff) bool {
	return len(diffs) > 1 && diffs[0].Edit != 0 && diffs[0].Edit == diffs[1].Edit &&
		diffs[0].Event == pipeline.Removed && diffs[1].Event == pipeline.Added
}

// splitSnippet returns the snippet of d, and the range of it that changed.
func splitSnippet(d pipeline.Diff) (snippet string, from, to int) {
	snippet, changed := Clean(d.Snippet), Clean(d.Text)
	if from = strings.Index(snippet, changed); from < 0 {
		return changed, 0, len(changed)
	}
	return snippet, from, from + len(changed)
}

// replacementSpans returns the spans of one line: the row, the removed text, the added text and the text
// around it. It returns nil if both texts are too long for one line.
func replacementSpans(removed, added pipeline.Diff, r rows, b Budget) []Span {
	snippet, from, to := splitSnippet(added)
	before, after := snippet[:from], snippet[to:]
	changed := compareWords(strings.Fields(Clean(removed.Text)), strings.Fields(snippet[from:to]))
	row := r.rowPrefix(added)
	room := b.Line - b.Length(row)
	for _, s := range changed {
		room -= b.Length(s.Text)
	}
	if room < 0 {
		return nil
	}
	before, after = cutStart(before, room/2, b.Length), Cut(after, room/2, b.Length)
	return slices.DeleteFunc(slices.Concat([]Span{{Text: row + before}}, changed, []Span{{Text: after}}), func(s Span) bool { return s.Text == "" })
}

// cutStart returns s. If s is longer than limit, it returns a mark and the end of s.
func cutStart(s string, limit int, length func(string) int) string {
	const mark = "... "
	if length(s) <= limit {
		return s
	}
	for i := range s {
		if i > 0 && s[i-1] == ' ' && length(mark)+length(s[i:]) <= limit {
			return mark + s[i:]
		}
	}
	return ""
}

// compareWords returns the words of old and new as spans of what was removed, what was added and what
// both have. If these were many, all of old is removed and all of new is added.
func compareWords(old, new []string) []Span {
	spans := make([]Span, 0, maxLooks)
	add := func(event pipeline.Event, words []string) {
		if len(words) == 0 {
			return
		}
		text := strings.Join(words, " ")
		if len(spans) > 0 {
			text = " " + text
		}
		spans = append(spans, Span{Text: text, Event: event})
	}
	common := commonWords(old, new)
	for i, j := 0, 0; ; {
		a, b := i, j
		for i < len(old) && common[i] < 0 {
			i++
		}
		if i < len(old) {
			j = common[i]
		} else {
			j = len(new)
		}
		add(pipeline.Removed, old[a:i])
		add(pipeline.Added, new[b:j])
		if i == len(old) {
			break
		}
		from := j
		for i < len(old) && common[i] == j {
			i, j = i+1, j+1
		}
		add("", new[from:j])
	}
	if len(spans) > maxLooks-2 {
		spans = spans[:0]
		add(pipeline.Removed, old)
		add(pipeline.Added, new)
	}
	return spans
}

// commonWords returns, for each word of old, its place in new, or -1 if a longest common subsequence
// does not have it.
func commonWords(old, new []string) []int {
	const most = 300 // words
	place := make([]int, len(old))
	for i := range place {
		place[i] = -1
	}
	if len(old) > most || len(new) > most {
		return place
	}
	longest := make([][]int, len(old)+1)
	for i := range longest {
		longest[i] = make([]int, len(new)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(new) - 1; j >= 0; j-- {
			if old[i] == new[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(old) && j < len(new); {
		switch {
		case old[i] == new[j]:
			place[i] = j
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			i++
		default:
			j++
		}
	}
	return place
}

// maxHeadlineEdits is how many edits a headline names.
const maxHeadlineEdits = 3

// editsHeadline describes the edits among diffs for a headline, such as "10 → 12; added: argus".
func editsHeadline(diffs []pipeline.Diff) string {
	var said []string
	r, n := rowsOf(diffs), 0
	for len(diffs) > 0 {
		d, text := 1, ""
		switch {
		case diffs[0].Keyword != "":
			diffs = diffs[1:]
			continue
		case beginsReplacement(diffs):
			d, text = 2, r.rowPrefix(diffs[1])+shortText(diffs[0])+" → "+shortText(diffs[1])
		default:
			text = string(diffs[0].Event) + ": " + r.rowPrefix(diffs[0]) + shortText(diffs[0])
		}
		if diffs, n = diffs[d:], n+1; n <= maxHeadlineEdits {
			said = append(said, text)
		}
	}
	s := strings.Join(said, "; ")
	if n > maxHeadlineEdits {
		s = plural(n, "edit") + ": " + s
	}
	return s
}

func shortText(d pipeline.Diff) string { return Short(Clean(d.Text), maxKeyword) }
