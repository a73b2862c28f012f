// Package render lays notifications out for people: a Message is what is said of one, with its
// differences cut to a Budget, as plain text or Markdown. A Template of the operator's takes the
// place of a layout. It is text/template, kept within bounds: what could run for ever, grow
// without end or reach anything but the notification is refused when it is read, and one that
// fails at run time gives way to the layout, so that it never costs an alert.
package render

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Message is a notification for people. Every text in it is clean: valid UTF-8 in one
// line, without characters that steer a screen.
type Message struct {
	// Headline says in one line what happened, such as "added: argus; removed: zeus"; of a
	// health event its name.
	Headline string
	// Title is the page's title, or what of its URL names it; of a health event what it is
	// about. It may be empty.
	Title string
	// URL is the page's address, an http or https URL without user information; empty where
	// there is none.
	URL string
	// Lines are the differences, at most as many as the budget allows.
	Lines []Line
	// More is how many diffs are in no line, with those that the notification left out.
	More int
	// Reason says more where Headline is not about differences: what happened and why.
	Reason string
	// Pages are some of the pages that a health event is about.
	Pages []string
	// Health says that this is a health event, Good that all is well again.
	Health, Good bool
}

// Line is one difference.
type Line struct {
	Event pipeline.Event
	// Keywords are those that were found in it.
	Keywords []string
	// Spans are the snippet, in their order. Where it is cut, one is "...".
	Spans []Span
}

// Span is a part of a snippet.
type Span struct {
	Text string
	// Keyword says that it is part of the first keyword.
	Keyword bool
	// Changed says that it is part of what was added or removed; the rest is context.
	Changed bool
}

// Budget bounds a Message. Lengths are counted by Length.
type Budget struct {
	// Total bounds the sum of all texts, in which each line counts LineCost more than its
	// texts. Line bounds the snippet of one difference, 240 by default, and Lines how many
	// there are. Otherwise 0 is no bound.
	Total, Line, Lines, LineCost int
	// Length counts a text; nil means Runes.
	Length func(string) int
	// Location is that of times; nil means UTC.
	Location *time.Location
}

// Bounds of a Message, in runes.
const (
	maxHeadline = 160
	maxTitle    = 120
	maxURL      = 2000
	maxKeyword  = 60
	maxReason   = 400
	// defaultLine bounds a snippet.
	defaultLine = 240
)

// MessageOf lays n out within b. What does not fit is left out from the end, and counted.
func MessageOf(n pipeline.Notification, b Budget) Message {
	if b.Length == nil {
		b.Length = Runes
	}
	if b.Line == 0 {
		b.Line = defaultLine
	}
	if n.Health != nil {
		return ofHealth(*n.Health, b)
	}
	m := Message{
		Headline: Short(headline(n), maxHeadline), Title: Short(Clean(n.Title), maxTitle), URL: link(n.URL), More: n.Omitted,
	}
	if m.Title == "" {
		m.Title = Short(Page(n.URL), maxTitle)
	}
	if n.Status == pipeline.StatusTimeout {
		m.Reason = "this page is not watched any more: "
		if why := Short(Clean(n.Reason), maxReason); why != "" {
			m.Reason += why
		} else {
			m.Reason += "its checks failed too often"
		}
	}
	if n.Type == pipeline.NotificationTypeTest {
		m.Headline = Short("Test: "+m.Headline, maxHeadline)
		m.Reason = "this is a test: no page has changed"
	}
	left := b.Total - b.Length(m.Headline) - b.Length(m.Title) - b.Length(m.URL) - b.Length(m.Reason)
	full := false
	for _, d := range differences(n.Diffs, b) {
		l := d.line()
		left -= l.cost(b)
		full = full || b.Lines > 0 && len(m.Lines) == b.Lines || b.Total > 0 && left < 0
		if full {
			m.More += d.diffs
			continue
		}
		m.Lines = append(m.Lines, l)
	}
	return m
}

// cost is what l takes of a budget.
func (l Line) cost(b Budget) int {
	n := b.LineCost + b.Length(string(l.Event)) + b.Length(strings.Join(l.Keywords, ", "))
	for _, s := range l.Spans {
		n += b.Length(s.Text)
	}
	return n
}

// headline says what was added and what was removed.
func headline(n pipeline.Notification) string {
	var said []string
	for _, e := range []pipeline.Event{pipeline.Added, pipeline.Removed} {
		var keywords []string
		seen := make(map[string]bool)
		for _, d := range n.Diffs {
			if k := Short(Clean(d.Keyword), maxKeyword); d.Event == e && !seen[k] {
				seen[k] = true
				keywords = append(keywords, k)
			}
		}
		if len(keywords) > 0 {
			said = append(said, string(e)+": "+strings.Join(keywords, ", "))
		}
	}
	s := strings.Join(said, "; ")
	if much := Collected(n); much != "" {
		s = much + "; " + s
	}
	switch {
	case n.Status == pipeline.StatusTimeout:
		s = "not watched any more"
	case s == "":
		s = "nothing changed"
	}
	return s
}

// Page is the URL of a page without its scheme and user information, as a name of it.
func Page(raw string) string {
	s := Clean(raw)
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		u.User = nil
		s = strings.TrimPrefix(u.String(), u.Scheme+"://")
	}
	return s
}

// link returns the URL of a page if it is one to follow.
func link(raw string) string {
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

// Left says in words what is missing from the lines; empty where nothing is.
func (m Message) Left() string {
	if m.More > 0 {
		return fmt.Sprintf("and %d more", m.More)
	}
	return ""
}

// Sign is what stands before a line: "+" or "-".
func (l Line) Sign() string {
	if l.Event == pipeline.Removed {
		return "-"
	}
	return "+"
}

// Text is the snippet as it is.
func (l Line) Text() string {
	var b strings.Builder
	for _, s := range l.Spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// Plain is m as plain text of several lines.
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
		lines = append(lines, l.Sign()+" "+strings.Join(l.Keywords, ", ")+": "+l.Text())
	}
	lines = append(lines, m.Pages...)
	if left := m.Left(); left != "" {
		lines = append(lines, left)
	}
	return strings.Join(lines, "\n")
}

// Title is the headline of m, with the page or the receiver that a health event is about.
func Title(m Message) string {
	if m.Health && m.Title != "" {
		return m.Headline + ": " + m.Title
	}
	return m.Headline
}

// Below is what m says below its headline, as plain text; for a message that says no more
// it is the headline.
func Below(m Message) string {
	if _, below, ok := strings.Cut(m.Plain(), "\n"); ok {
		return below
	}
	return m.Headline
}

// Collected says how much a digest holds, such as "5 changes of 3 checks"; it is empty where n
// is none.
func Collected(n pipeline.Notification) string {
	if n.Type != pipeline.NotificationTypeDigest {
		return ""
	}
	return plural(len(n.Diffs), "change") + " of " + plural(len(n.Items), "check")
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
