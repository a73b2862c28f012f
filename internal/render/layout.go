// Package render lays notifications out for people: a Message is what is said of one, with its
// differences cut to a Budget, as plain text or Markdown. A Template of the operator's takes the
// place of a layout. It is text/template, kept within bounds: what could run for ever, grow
// without end or reach anything but the notification is refused when it is read, and one that
// fails at run time gives way to the layout, so that it never costs an alert.
package render

import (
	"time"
	"unicode/utf16"
	"unicode/utf8"

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

// Runes is the number of runes in s.
func Runes(s string) int { return utf8.RuneCountInString(s) }

// Bytes is the number of bytes in s.
func Bytes(s string) int { return len(s) }

// UTF16 is the number of UTF-16 code units that s takes.
func UTF16(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
