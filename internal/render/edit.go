package render

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/vokter/vokter/pipeline"
)

// maxLooks is the largest number of spans of a line about an edit, after Looks has joined them.
const maxLooks = 7

// countedLine is a line of a Message, made of one or more diffs.
type countedLine struct {
	line  Line
	diffs int // how many of the diffs it is
}

// editLine returns the line for the edit at the beginning of diffs, which have no keyword. All texts of an
// item that is new or gone are one line. If removed text and the added text in its place both fit into a
// line, it is the whole edit, and those that follow in the same row; else it is the first diff of it.
func editLine(diffs []pipeline.Diff, b Budget) countedLine {
	if n := countItemDiffs(diffs); n > 0 {
		return countedLine{itemLine(diffs[:n], b), n}
	}
	if beginsReplacement(diffs) {
		for n := countReplacements(diffs); n > 0; n-- {
			if spans := replacementSpans(diffs[:2*n], b); spans != nil {
				return countedLine{Line{Spans: spans, Item: diffs[1].Item}, 2 * n}
			}
		}
	}
	d := difference{Diff: diffs[0], title: titlePrefix(diffs[0])}
	d.snippet, d.changeStart, d.changeEnd = splitSnippet(d.Diff)
	d.fitExcerpt(b)
	return countedLine{d.line(), 1}
}

// countItemDiffs returns how many of diffs, from the first on, are the texts of one item that is new or
// gone.
func countItemDiffs(diffs []pipeline.Diff) int {
	d := diffs[0]
	if d.Item != pipeline.ItemNew && d.Item != pipeline.ItemGone {
		return 0
	}
	n := 1
	for n < len(diffs) && d.Edit != 0 && diffs[n].Edit == d.Edit && diffs[n].Keyword == "" {
		n++
	}
	return n
}

// itemLine returns the line for an item that is new or gone.
func itemLine(diffs []pipeline.Diff, b Budget) Line {
	var texts []string
	for _, d := range diffs {
		texts = append(texts, Clean(d.Text))
	}
	title := titleOf(diffs[0])
	cut := strings.TrimSuffix(title, "…")
	named := false
	for i, t := range texts {
		if before, ok := strings.CutSuffix(t, trimMarks(title)); ok && trimMarks(title) != "" && (before == "" || strings.HasSuffix(before, ": ")) {
			named, texts[i] = true, before+title // with the marks at its ends, which are no part of the change
			break
		}
		if named = len(cut) < len(title) && strings.HasPrefix(t, cut); named {
			break
		}
	}
	d := difference{Diff: diffs[0], snippet: strings.Join(texts, itemBorder)}
	if title != "" && !named && !strings.HasPrefix(d.snippet, cut) {
		d.title = title + itemBorder
	}
	d.changeEnd = len(d.snippet)
	d.fitExcerpt(b)
	return d.line()
}

// trimMarks returns s without what is neither a letter nor a digit at its ends.
func trimMarks(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// beginsReplacement reports whether diffs begin with a removed text and the added text in its place.
func beginsReplacement(diffs []pipeline.Diff) bool {
	return len(diffs) > 1 && diffs[0].Edit != 0 && diffs[0].Edit == diffs[1].Edit &&
		diffs[0].Event == pipeline.Removed && diffs[1].Event == pipeline.Added
}

// splitSnippet returns the snippet of d, and the range of it that changed.
func splitSnippet(d pipeline.Diff) (snippet string, from, to int) {
	snippet, changed := Clean(d.Snippet), Clean(d.Text)
	if from = findChanged(d, snippet, changed); from < 0 {
		return changed, 0, len(changed)
	}
	return snippet, from, from + len(changed)
}

// findChanged returns where the text changed of d begins in its snippet, both clean, or -1 if it does not stand there.
func findChanged(d pipeline.Diff, snippet, changed string) int {
	if d.SnippetAt > 0 && d.SnippetAt < len(d.Snippet) {
		const mark = "x" // keeps the blank in front of the text
		at := len(Clean(d.Snippet[:d.SnippetAt]+mark)) - len(mark)
		if at < len(snippet) && strings.HasPrefix(snippet[at:], changed) {
			return at
		}
	}
	return strings.Index(snippet, changed)
}

// maxReplacements is how many replaced texts one line shows.
const maxReplacements = 6

// countReplacements returns how many replaced texts, from that at the beginning of diffs on, stand one behind the other
// in one text, such as the cells of a row.
func countReplacements(diffs []pipeline.Diff) int {
	n, last := 1, diffs[1]
	snippet, _, end := splitSnippet(last)
	if last.Item == "" || snippet != Clean(last.Snippet) {
		return 1
	}
	for rest := diffs[2:]; n < maxReplacements && beginsReplacement(rest); rest = rest[2:] {
		d := rest[1]
		_, from, to := splitSnippet(d)
		if d.Snippet != last.Snippet || d.Title != last.Title || from < end {
			break
		}
		n, end = n+1, to
	}
	return n
}

// replacementSpans returns the spans of one line: the title of the item, and of each replacement of diffs the removed
// text and the added text, with the text around them. It returns nil if these are too long for one line.
func replacementSpans(diffs []pipeline.Diff, b Budget) []Span {
	snippet, from, to := splitSnippet(diffs[1])
	before := snippet[:from]
	var changed []Span
	for i := 0; i < len(diffs); i += 2 {
		if end := to; i > 0 {
			_, from, to = splitSnippet(diffs[i+1])
			changed = append(changed, Span{Text: snippet[end:from]})
		}
		changed = append(changed, compareWords(strings.Fields(Clean(diffs[i].Text)), strings.Fields(snippet[from:to]))...)
	}
	title := titlePrefix(diffs[1])
	before, after, ok := fitAround(title, before, changed, snippet[to:], b)
	if !ok {
		return nil
	}
	return joinSpans(title+before, changed, after)
}

// fitAround cuts the text before and after changed spans so that they fit into one line with title. ok is false if there
// is no room for the spans.
func fitAround(title, before string, changed []Span, after string, b Budget) (cutBefore, cutAfter string, ok bool) {
	room := b.Line - b.Length(title)
	for _, s := range changed {
		room -= b.Length(s.Text)
	}
	if room < 0 {
		return "", "", false
	}
	return cutStart(before, room/2, b.Length), Cut(after, room/2, b.Length), true
}

// joinSpans returns the spans of one line, without empty ones.
func joinSpans(before string, changed []Span, after string) []Span {
	all := slices.Concat([]Span{{Text: before}}, changed, []Span{{Text: after}})
	return slices.DeleteFunc(all, func(s Span) bool { return s.Text == "" })
}

// cutMark stands where the beginning of a text was cut off.
const cutMark = "... "

// cutStart returns s. If s is longer than limit, it returns a mark and the end of s.
func cutStart(s string, limit int, length func(string) int) string {
	if length(s) <= limit {
		return s
	}
	for i := range s {
		if i > 0 && s[i-1] == ' ' && length(cutMark)+length(s[i:]) <= limit {
			return cutMark + s[i:]
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

const (
	// maxHeadlineEdits is how many edits a headline names.
	maxHeadlineEdits = 3
	// muchLarger is by how many bytes an edit must be larger than those before it to come first in a headline: the number
	// in the title of a page comes before its news.
	muchLarger = 20
)

// editsHeadline describes the edits among diffs for a headline, such as "10 → 12; added: argus". They are in their
// order, but one that is much larger comes first.
func editsHeadline(diffs []pipeline.Diff) string {
	var edits []string
	first, largest := 0, 0
	for len(diffs) > 0 {
		d, text := 1, ""
		switch {
		case diffs[0].Keyword != "":
			diffs = diffs[1:]
			continue
		case countItemDiffs(diffs) > 0:
			d, text = countItemDiffs(diffs), diffs[0].Item+": "+cmp.Or(titleOf(diffs[0]), shortText(diffs[0]))
		case beginsReplacement(diffs):
			d, text = 2, shortPrefix(diffs[1])+shortText(diffs[0])+" → "+shortText(diffs[1])
		default:
			text = string(diffs[0].Event) + ": " + shortPrefix(diffs[0]) + shortText(diffs[0])
		}
		size := 0
		for _, of := range diffs[:d] {
			size += len(of.Text)
		}
		switch {
		case len(edits) == 0:
			largest = size
		case size > largest+muchLarger:
			first, largest = len(edits), size
		}
		edits, diffs = append(edits, text), diffs[d:]
	}
	n := len(edits)
	if n == 0 {
		return ""
	}
	front := edits[first]
	edits = slices.Insert(slices.Delete(edits, first, first+1), 0, front)
	s := strings.Join(edits[:min(n, maxHeadlineEdits)], "; ")
	if n > maxHeadlineEdits {
		s = plural(n, "edit") + ": " + s
	}
	return s
}

// shortPrefix returns the title of the item in which d is, to write before its text, unless the text is of
// the title itself.
func shortPrefix(d pipeline.Diff) string {
	if title := titleOf(d); title != "" && !strings.Contains(title, shortText(d)) {
		return title + itemBorder
	}
	return ""
}

func shortText(d pipeline.Diff) string { return Short(Clean(d.Text), maxKeyword) }
