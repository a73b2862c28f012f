package render

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// typicalSpans is the number of spans of most excerpts.
const typicalSpans = 5

// difference is a difference with keywords found in it, near one another.
type difference struct {
	pipeline.Diff
	keywords []string
	diffs    int // the number of the notification's diffs in it
	// snippet is the text from which the excerpt is cut. The first keyword is
	// snippet[keywordStart:keywordEnd], the changed text snippet[changeStart:changeEnd]. A range is
	// empty if it is not visible.
	snippet                  string
	title                    string // stands before the excerpt
	keywordStart, keywordEnd int
	changeStart, changeEnd   int
	// spans are the excerpt, snippet[start:end]. isEdit says that they show both sides of an edit.
	spans      []Span
	start, end int
	isEdit     bool
}

// diffLines returns the diffs as lines. It joins those of one difference if one excerpt can show
// their keywords, and those of one edit.
func diffLines(diffs []pipeline.Diff, b Budget) []countedLine {
	var lines []countedLine
	for len(diffs) > 0 {
		n := 0
		for n < len(diffs) && diffs[n].Keyword != "" {
			n++
		}
		for _, d := range joinSides(joinDifferences(diffs[:n], b)) {
			lines = append(lines, countedLine{d.line(), d.diffs})
		}
		for diffs = diffs[n:]; len(diffs) > 0 && diffs[0].Keyword == ""; {
			e := editLine(diffs, b)
			lines, diffs = append(lines, e), diffs[e.diffs:]
		}
	}
	return lines
}

// joinDifferences returns the differences of diffs, all of which have a keyword. It joins the diffs of
// one difference if one excerpt can show their keywords.
func joinDifferences(diffs []pipeline.Diff, b Budget) []difference {
	type place struct {
		event         pipeline.Event
		offset        int
		text, snippet string
		title         string
	}
	found := make([]difference, 0, len(diffs))
	at := make(map[place][]int) // which of found stand there
	var read string             // words are those of it: the keywords of one difference follow each other
	var words []text.Token
	for _, d := range diffs {
		snippet := Clean(d.Snippet)
		if snippet == "" {
			snippet = Clean(d.Text)
		}
		if snippet != read {
			read, words = snippet, text.Tokens(snippet)
		}
		keyword, changed := Clean(d.Keyword), Clean(d.Text)
		start := findChanged(d, snippet, changed)
		from, to := findKeyword(snippet, words, keyword, max(start, 0))
		p := place{d.Event, d.Offset, d.Text, d.Snippet, d.Title}
		// What changed beside a keyword is all in one excerpt.
		isBeside := start >= 0 && (to <= start || from >= start+len(changed))
		beside := place{event: d.Event, snippet: d.Snippet, title: d.Title}
		there := at[p]
		if isBeside && len(there) == 0 {
			there = at[beside]
		}
		i := slices.IndexFunc(there, func(i int) bool {
			return from == to || from >= found[i].start && to <= found[i].end
		})
		if i >= 0 {
			i = there[i]
		} else {
			i = len(found)
			next := difference{Diff: d, snippet: snippet, title: titlePrefix(d), keywordStart: from, keywordEnd: to}
			if start >= 0 {
				next.changeStart, next.changeEnd = start, start+len(changed)
			}
			if next.fitEdit(b); !next.isEdit {
				next.fitExcerpt(b)
			}
			found = append(found, next)
			at[p] = append(at[p], i)
			if isBeside {
				at[beside] = append(at[beside], i)
			}
		}
		found[i].diffs++
		if k := Short(keyword, maxKeyword); !slices.Contains(found[i].keywords, k) {
			found[i].keywords = append(found[i].keywords, k)
		}
	}
	return found
}

// joinSides joins the two sides of an edit that both have a keyword.
func joinSides(found []difference) []difference {
	type side struct {
		event                    pipeline.Event
		text, counterpart, title string
	}
	opposite := map[pipeline.Event]pipeline.Event{pipeline.Added: pipeline.Removed, pipeline.Removed: pipeline.Added}
	waiting := make(map[side]int) // the sides without the other one, by their places in joined
	joined := found[:0]
	for _, d := range found {
		other := side{opposite[d.Event], d.Counterpart, d.Text, d.Title}
		i, ok := waiting[other]
		if !ok || !d.isEdit {
			if is := (side{d.Event, d.Text, d.Counterpart, d.Title}); d.isEdit {
				if _, several := waiting[is]; !several {
					waiting[is] = len(joined)
				}
			}
			joined = append(joined, d)
			continue
		}
		delete(waiting, other)
		o := &joined[i]
		o.Event, o.diffs = "", o.diffs+d.diffs
		for _, k := range d.keywords {
			if !slices.Contains(o.keywords, k) {
				o.keywords = append(o.keywords, k)
			}
		}
	}
	return joined
}

// fitEdit sets the excerpt to one that shows both sides of the edit that d is, if there is room for them.
func (d *difference) fitEdit(b Budget) {
	if d.Counterpart == "" || d.changeStart == d.changeEnd {
		return
	}
	old, new := d.Text, d.Counterpart
	if d.Event == pipeline.Added {
		old, new = new, old
	}
	changed := compareWords(strings.Fields(Clean(old)), strings.Fields(Clean(new)))
	before, after, ok := fitAround(d.title, d.snippet[:d.changeStart], changed, d.snippet[d.changeEnd:], b)
	if !ok {
		return
	}
	d.spans, d.isEdit = joinSpans(d.title+before, changed, after), true
	d.markKeyword()
	d.start, d.end = d.changeStart-len(strings.TrimPrefix(before, cutMark)), d.changeEnd+len(strings.TrimSuffix(after, "…"))
}

// markKeyword marks the keyword in the spans of an edit, where one span has all of it.
func (d *difference) markKeyword() {
	keyword := d.snippet[d.keywordStart:d.keywordEnd]
	for i, s := range d.spans {
		at := strings.Index(s.Text, keyword)
		if keyword == "" || at < 0 || s.Event != "" && s.Event != d.Event {
			continue
		}
		end := at + len(keyword)
		parts := []Span{{Text: s.Text[:at], Event: s.Event}, {Text: keyword, Event: s.Event, Keyword: true}, {Text: s.Text[end:], Event: s.Event}}
		parts = slices.DeleteFunc(parts, func(s Span) bool { return s.Text == "" })
		d.spans = slices.Replace(d.spans, i, i+1, parts...)
		return
	}
}

// line returns d as a line of a Message.
func (d *difference) line() Line {
	return Line{Event: d.Event, Item: d.Item, Keywords: d.keywords, Spans: d.spans}
}

// fitExcerpt sets the excerpt: at most b.Line, dots and title included, around the keyword, or around the
// changed text if the keyword is not visible.
func (d *difference) fitExcerpt(b Budget) {
	focus := d.changeStart
	if d.keywordStart < d.keywordEnd {
		focus = d.keywordStart
	}
	for limit := b.Line; ; limit -= max(limit/8, 1) {
		d.start, d.end = excerptRange(d.snippet, focus, limit)
		d.spans = d.excerptSpans(d.start, d.end)
		n := 0
		for _, s := range d.spans {
			n += b.Length(s.Text)
		}
		if n <= b.Line || limit <= 1 {
			return
		}
	}
}

// excerptSpans returns the excerpt from start to end.
func (d *difference) excerptSpans(start, end int) []Span {
	spans := make([]Span, 0, typicalSpans)
	if d.title != "" {
		spans = append(spans, Span{Text: d.title})
	}
	if start > 0 {
		spans = append(spans, Span{Text: "... "})
	}
	style := func(i int) Span {
		s := Span{Keyword: i >= d.keywordStart && i < d.keywordEnd}
		if i >= d.changeStart && i < d.changeEnd {
			s.Event = d.Event
		}
		return s
	}
	for i := start; i < end; {
		s, j := style(i), i+1
		for j < end && style(j) == s {
			j++
		}
		s.Text = d.snippet[i:j]
		spans = append(spans, s)
		i = j
	}
	if end < len(d.snippet) {
		spans = append(spans, Span{Text: " ..."})
	}
	return spans
}

// maxBlankShift is how many runes a cut may move to a blank.
const maxBlankShift = 20

// excerptRange returns the bytes [start, end) of s to show: about limit runes, so that what begins
// at byte at stays visible with a third of the limit before it. It cuts at blanks where
// there are any near. at has to be the start of a rune.
func excerptRange(s string, at, limit int) (start, end int) {
	total := utf8.RuneCountInString(s)
	if total <= limit {
		return 0, len(s)
	}
	before := utf8.RuneCountInString(s[:at])
	first := max(min(before-limit/3, total-limit), 0)
	start = byteIndex(s, first)
	end = start + byteIndex(s[start:], limit)
	if near := s[start:min(start+byteIndex(s[start:], maxBlankShift), at)]; start > 0 && s[start-1] != ' ' {
		start += strings.IndexByte(near, ' ') + 1
	}
	if end < len(s) && s[end] != ' ' {
		if i := strings.LastIndexByte(s[start:end], ' '); i >= 0 && utf8.RuneCountInString(s[start+i:end]) <= maxBlankShift {
			end = start + i
		}
	}
	return start, end
}

// byteIndex returns the index of the byte behind the first n runes of s.
func byteIndex(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

var english = text.NewLanguages().Normalizer("en")

// findKeyword returns the range of keyword in s, whose tokens are words: the first one at or after
// byte from, or else the first one. It compares as strictly as possible. If the words of the
// keyword are not adjacent, it returns the range of the first one. An empty range means that it
// was not found.
func findKeyword(s string, words []text.Token, keyword string, from int) (start, end int) {
	wanted := text.Tokens(keyword)
	sign := func(in string) func(text.Token) bool {
		return func(t text.Token) bool { return text.IsSign(in[t.Start:t.End]) }
	}
	if !slices.ContainsFunc(wanted, sign(keyword)) && slices.ContainsFunc(words, sign(s)) { // it is found across signs
		words = slices.DeleteFunc(slices.Clone(words), sign(s))
	}
	forms := []text.Form{0, text.FormCase, text.FormCase | text.FormMarks, text.FormStem | text.FormMarks}
	for n := len(wanted); n > 0; n = min(n-1, 1) {
		for _, f := range forms {
			terms := make([]string, n)
			for i, w := range wanted[:n] {
				terms[i] = english.Term(keyword[w.Start:w.End], f)
			}
			for i := 0; i+n <= len(words); i++ {
				if !matchTerms(s, words[i:i+n], terms, f) {
					continue
				}
				if a, b := words[i].Start, words[i+n-1].End; b > from {
					return a, b
				} else if end == 0 {
					start, end = a, b
				}
			}
			if end > 0 {
				return start, end
			}
		}
	}
	return 0, 0
}

// matchTerms reports whether words of s are the terms, in the form f.
func matchTerms(s string, words []text.Token, terms []string, f text.Form) bool {
	for i, t := range words {
		if english.Term(s[t.Start:t.End], f) != terms[i] {
			return false
		}
	}
	return true
}

// itemBorder stands between the title of an item and its other texts.
const itemBorder = " · "

// titlePrefix returns the text to write before the snippet of d: the title of its item, unless the snippet
// has it or is the whole of the item that changed.
func titlePrefix(d pipeline.Diff) string {
	title := titleOf(d)
	snippet := Clean(d.Snippet)
	cut := d.Item == pipeline.ItemNew || d.Item == pipeline.ItemGone || strings.HasPrefix(snippet, "...")
	if title == "" || !cut || strings.Contains(snippet, strings.TrimSuffix(title, "…")) {
		return ""
	}
	return title + itemBorder
}

// titleOf returns the title of the item in which d is, or nothing.
func titleOf(d pipeline.Diff) string { return Short(Clean(d.Title), maxKeyword) }
