// Package render formats notifications for people. A Message has the texts of a notification,
// cut to a Budget, and can be written as plain text or Markdown. A Template of the operator
// replaces this layout. It has the syntax of text/template with limits: a template that could
// run for ever, grow without end or reach anything but the notification is refused when it is
// read. If it fails at run time, the layout is used, so that no notification is lost.
package render

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Message is a notification for people. Every text in it is valid UTF-8 in one line, without
// control characters.
type Message struct {
	// Headline says in one line what happened, such as "added: argus; removed: zeus". For a
	// health event it is the name of the event.
	Headline string
	// Title is the page's title, or a part of its URL. For a health event it is the subject of
	// the event. It may be empty.
	Title string
	// URL is the page's http or https URL without user information. It is empty if there is
	// none.
	URL string
	// Link is the address of a web page about the change, or empty.
	Link string
	// Lines are the differences, at most as many as the budget allows.
	Lines []Line
	// More is how many diffs are in no line, including those that the notification left out.
	More int
	// Reason says what happened and why, if Headline is not about differences.
	Reason string
	// Pages are the pages of a group, or some of the pages that a health event is about.
	Pages []Entry
	// Severity is that of the subscription: info, warning, critical or empty.
	Severity string
	// Health says that this is a health event, Good that the event ends a fault.
	Health, Good bool
}

// Line is one difference.
type Line struct {
	// Event is empty if text was replaced by other text.
	Event pipeline.Event
	// Item is what became of the item in which it is: pipeline.Diff.Item.
	Item string
	// Keywords are the keywords that were found in it. There are none if the subscription has none.
	Keywords []string
	// Spans are the parts of the snippet, in order. A part that was cut off is the span "...".
	Spans []Span
}

// Span is a part of a snippet.
type Span struct {
	Text string
	// Keyword says that it is part of the first keyword.
	Keyword bool
	// Event says that it is part of what was added or removed. It is empty for the context.
	Event pipeline.Event
}

// Budget limits the size of a Message. Lengths are measured by Length.
type Budget struct {
	// Total limits the sum of all texts; each line counts LineCost in addition to its texts.
	// Line limits the snippet of one difference, 240 by default, and Lines the number of lines.
	// For Total and Lines 0 means no limit.
	Total, Line, Lines, LineCost int
	// Length counts a text; nil means Runes.
	Length func(string) int
	// Location is the time zone of times. Nil means UTC.
	Location *time.Location
}

// Limits of a Message, in runes.
const (
	maxHeadline = 160
	maxTitle    = 120
	maxURL      = 2000
	maxKeyword  = 60
	maxReason   = 400
	maxPlace    = 100
	// defaultLine is the default of Budget.Line.
	defaultLine = 240
)

// MessageOf returns n as a Message within b. Lines that do not fit are left out from the end,
// and counted in More.
func MessageOf(n pipeline.Notification, b Budget) Message {
	if b.Length == nil {
		b.Length = Runes
	}
	b.Line = cmp.Or(b.Line, defaultLine)
	about := safeURL(n.Link)
	if b.Total > 0 && about != "" {
		b.Total = max(b.Total-b.Length(about)-b.Length(linkLabel)-2, 1)
	}
	m := messageWithoutLink(n, b)
	m.Link = about
	return m
}

// linkLabel is the text of the link to the web page about a change, or stands before its address.
const linkLabel = "What changed"

// Linked returns the line with the address of the web page, or "".
func (m Message) Linked() string {
	if m.Link == "" {
		return ""
	}
	return linkLabel + ": " + m.Link
}

// messageWithoutLink is MessageOf without the link.
func messageWithoutLink(n pipeline.Notification, b Budget) Message {
	if n.Health != nil {
		return healthMessage(*n.Health, b)
	}
	if isGroup(n) {
		return groupMessage(n, b)
	}
	return pageMessage(n, b)
}

// pageMessage returns the Message of what happened on one page.
func pageMessage(n pipeline.Notification, b Budget) Message {
	m := Message{
		Headline: markCritical(n, Short(headline(n), maxHeadline)), Severity: n.Severity, Title: Short(Clean(n.Title), maxTitle), URL: safeURL(n.URL), More: n.Omitted,
	}
	if m.Title == "" {
		m.Title = Short(Page(n.URL), maxTitle)
	}
	if n.TellsOutage() {
		m.Reason, m.Good = outageMeanings[n.Status], n.Status == pipeline.StatusRecovered
		if why := Short(Clean(n.Reason), maxReason); why != "" {
			m.Reason += ": " + why
		}
	}
	if n.Muting != nil {
		m.Reason = mutingNotice(*n.Muting)
	}
	if n.Type == pipeline.NotificationTypeTest {
		m.Headline = Short("Test: "+m.Headline, maxHeadline)
		m.Reason = "this is a test: no page has changed"
	}
	left := b.Total - b.Length(m.Headline) - b.Length(m.Title) - b.Length(m.URL) - b.Length(m.Reason)
	full := false
	for _, d := range foldEqual(messageLines(n, b)) {
		left -= d.line.cost(b)
		full = full || b.Lines > 0 && len(m.Lines) == b.Lines || b.Total > 0 && left < 0
		if full {
			m.More += d.diffs
			continue
		}
		m.Lines = append(m.Lines, d.line)
	}
	return m
}

// mutingNotice says which places are muted from now on, and how that is undone.
func mutingNotice(m pipeline.Muting) string {
	var named []string
	for _, p := range m.Places {
		named = append(named, Short(Clean(p), maxPlace))
	}
	if more := m.Count - len(named); more > 0 && len(named) > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	places, them := "1 place changes at nearly every check", "it"
	if m.Count != 1 {
		them = "them"
		places = fmt.Sprintf("%d places change at nearly every check", m.Count)
	}
	if places += ": " + strings.Join(named, "; "); m.Whole {
		return places + ". Nothing else of this page does. \"restless: mute numbers\" in the subscription leaves " + them + " out, and \"restless: tell\" keeps " + them
	}
	return places + ". From now on you are not told of " + them + "; \"restless: tell\" in the subscription undoes that"
}

// messageLines returns the lines of n, one for each difference. The change of a value is the headline of a
// notification, and a line in a digest.
func messageLines(n pipeline.Notification, b Budget) []countedLine {
	switch {
	case n.Value != nil:
		return nil
	case !slices.ContainsFunc(n.Items, func(i pipeline.Item) bool { return i.Value != nil }):
		return diffLines(n.Diffs, b)
	}
	var all []countedLine
	diffs := n.Diffs
	for _, i := range n.Items {
		of := diffs[:min(max(i.Diffs, 0), len(diffs))]
		diffs = diffs[len(of):]
		if i.Value == nil {
			all = append(all, diffLines(of, b)...)
			continue
		}
		all = append(all, countedLine{Line{Spans: []Span{{Text: Short(Clean(i.Value.String()), b.Line)}}}, 1})
	}
	return all
}

// foldEqual returns lines, of which those that say the same are one, with how often they do.
func foldEqual(lines []countedLine) []countedLine {
	at := make(map[string]int, len(lines))
	times := make([]int, 0, len(lines))
	folded := lines[:0]
	for _, l := range lines {
		said := l.line.Head() + "\x00" + l.line.What() + "\x00" + l.line.Text()
		if i, ok := at[said]; ok {
			times[i], folded[i].diffs = times[i]+1, folded[i].diffs+l.diffs
			continue
		}
		at[said] = len(folded)
		folded, times = append(folded, l), append(times, 1)
	}
	for i, n := range times {
		if n > 1 {
			spans := &folded[i].line.Spans
			*spans = append(slices.Clip(*spans), Span{Text: fmt.Sprintf(" (%d times)", n)})
		}
	}
	return folded
}

// markCritical returns the headline of n. It says so if n is critical.
func markCritical(n pipeline.Notification, headline string) string {
	if n.Severity == pipeline.SeverityCritical {
		return "CRITICAL: " + headline
	}
	return headline
}

// cost returns the length of l in a budget.
func (l Line) cost(b Budget) int {
	n := b.LineCost + b.Length(string(l.Event)) + b.Length(strings.Join(l.Keywords, ", "))
	return n + b.Length(l.Text())
}

// keywordsOf says which keywords were added and which were removed.
func keywordsOf(n pipeline.Notification) string {
	var said []string
	for _, e := range []pipeline.Event{pipeline.Added, pipeline.Removed} {
		var keywords []string
		seen := make(map[string]bool)
		for _, d := range n.Diffs {
			if k := Short(Clean(d.Keyword), maxKeyword); d.Event == e && d.Keyword != "" && !seen[k] {
				seen[k] = true
				keywords = append(keywords, k)
			}
		}
		if len(keywords) > 0 {
			said = append(said, string(e)+": "+strings.Join(keywords, ", "))
		}
	}
	return strings.Join(said, "; ")
}

// headline says what was added and what was removed.
func headline(n pipeline.Notification) string {
	if n.Value != nil {
		return Clean(n.Value.String())
	}
	s := keywordsOf(n)
	if k := len(n.Items); k > 0 && n.Items[0].Value != nil && n.Items[k-1].Value != nil {
		whole := *n.Items[k-1].Value
		whole.Old, whole.Condition = n.Items[0].Value.Old, ""
		s = Clean(whole.String())
	} else if edits := editsHeadline(n.Diffs); edits != "" {
		if s != "" {
			s += "; "
		}
		s += edits
	}
	if much := Collected(n); much != "" {
		s = much + "; " + s
	}
	switch {
	case n.TellsOutage():
		s = outageHeadlines[n.Status]
	case s == "":
		s = "nothing changed"
	}
	return s
}

// outageHeadlines and outageMeanings say what became of a page that fails, by the status of the notification.
var (
	outageHeadlines = map[string]string{
		pipeline.StatusTimeout: "cannot be read", pipeline.StatusRecovered: "answers again", pipeline.StatusExpired: "not watched any more",
	}
	outageMeanings = map[string]string{
		pipeline.StatusTimeout: "this page cannot be read", pipeline.StatusRecovered: "this page is read again",
		pipeline.StatusExpired: "this page is not watched any more",
	}
)

// Page returns a name of a page: its URL without scheme and user information.
func Page(raw string) string {
	s := Clean(raw)
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		u.User = nil
		s = strings.TrimPrefix(u.String(), u.Scheme+"://")
	}
	return s
}

// safeURL returns an http or https URL without user information. It returns "" for all others, and for
// those that are too long.
func safeURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || Clean(raw) != raw {
		return ""
	}
	u.User = nil
	if s := u.String(); len(s) <= maxURL {
		return s
	}
	return ""
}

// Left returns the text about diffs that are not in the lines, or "" if there are none.
func (m Message) Left() string {
	if m.More > 0 {
		return fmt.Sprintf("and %d more", m.More)
	}
	return ""
}

// Sign returns the sign of a line: "+", "-", or "~" if text was replaced.
func (l Line) Sign() string {
	switch l.Event {
	case pipeline.Added:
		return "+"
	case pipeline.Removed:
		return "-"
	}
	return "~"
}

// What returns what happened: "new" or "gone" for such an item, else "added", "removed", or "changed" if text
// was replaced.
func (l Line) What() string {
	if l.IsWhole() {
		return l.Item
	}
	return cmp.Or(string(l.Event), "changed")
}

// IsWhole reports whether the line is about an item that is new or gone, or about a part of it.
func (l Line) IsWhole() bool { return l.Item == pipeline.ItemNew || l.Item == pipeline.ItemGone }

// Marks reports whether the line marks what was removed and what was added: if it shows both, or has no keywords.
func (l Line) Marks() bool {
	has := func(e pipeline.Event) bool {
		return slices.ContainsFunc(l.Spans, func(s Span) bool { return s.Event == e })
	}
	return len(l.Keywords) == 0 || has(pipeline.Removed) && has(pipeline.Added)
}

// Head returns the sign and the keywords, or what happened if there are no keywords.
func (l Line) Head() string {
	if len(l.Keywords) == 0 {
		return l.Sign() + " " + l.What()
	}
	return l.Sign() + " " + strings.Join(l.Keywords, ", ")
}

// Text returns the snippet without formats. If the line Marks, removed text stands in [-…-] and added text in {+…+}.
func (l Line) Text() string {
	var b strings.Builder
	marks := l.Marks()
	for i := 0; i < len(l.Spans); {
		event, text := l.Spans[i].Event, ""
		for ; i < len(l.Spans) && l.Spans[i].Event == event; i++ {
			text += l.Spans[i].Text
		}
		switch {
		case !marks || event == "":
			b.WriteString(text)
		case event == pipeline.Removed:
			b.WriteString(markInside("[-", text, "-]"))
		default:
			b.WriteString(markInside("{+", text, "+}"))
		}
	}
	return b.String()
}

// markInside returns s with the marks open and end inside its outer blanks.
func markInside(open, s, end string) string {
	core := strings.Trim(s, " ")
	if core == "" {
		return s
	}
	before, after, _ := strings.Cut(s, core)
	return before + open + core + end + after
}

// Plain returns m as plain text of several lines.
func (m Message) Plain() string {
	lines := []string{m.Headline}
	for _, s := range []string{m.Title, m.URL, m.Reason} {
		if s != "" {
			lines = append(lines, s)
		}
	}
	if len(m.Lines) > 0 {
		lines = append(lines, "")
	}
	for _, l := range m.Lines {
		if len(l.Keywords) == 0 && !l.IsWhole() {
			lines = append(lines, l.Sign()+" "+l.Text())
		} else {
			lines = append(lines, l.Head()+": "+l.Text())
		}
	}
	for _, page := range m.Pages {
		lines = append(lines, page.String())
	}
	if left := m.Left(); left != "" {
		lines = append(lines, left)
	}
	if more := m.Linked(); more != "" {
		lines = append(lines, more)
	}
	return strings.Join(lines, "\n")
}

// Title returns the headline of m, with the page or the receiver of a health event.
func Title(m Message) string {
	if m.Health && m.Title != "" {
		return m.Headline + ": " + m.Title
	}
	return m.Headline
}

// Below returns the text of m below its headline as plain text. If there is none, it returns
// the headline.
func Below(m Message) string {
	if _, below, ok := strings.Cut(m.Plain(), "\n"); ok {
		return below
	}
	return m.Headline
}

// Collected describes the size of a digest, such as "5 changes of 3 checks". It returns "" if n
// is no digest.
func Collected(n pipeline.Notification) string {
	if n.Type != pipeline.NotificationTypeDigest {
		return ""
	}
	changes := len(n.Diffs)
	for _, i := range n.Items {
		if i.Value != nil {
			changes += 1 - i.Diffs
		}
	}
	return plural(max(changes, 0), "change") + " of " + plural(len(n.Items), "check")
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
