// Package layout lays notifications out for people: what to say in which order, cleaned
// of what could steer a screen, within a budget. Each sink turns that into its own
// format; nothing here is escaped for any.
package layout

import (
	"github.com/vokter/vokter/pipeline"
)

// Message is a notification for people.
type Message struct {
	// Headline says in one line what happened, such as "2 changes: argus added, zeus
	// removed"; for a health event what it is about.
	Headline string
	// Title is the page's title, or what of its URL names it; empty where no page is meant.
	Title string
	// URL is the page's address as http or https URL without user information; empty
	// where there is none.
	URL string
	// Lines are the differences, at most as many as the budget allows.
	Lines []Line
	// More is how many differences were left out.
	More int
	// Reason explains a Headline that is not about differences.
	Reason string
}

// Line is one difference.
type Line struct {
	Event   pipeline.Event
	Keyword string
	// Spans are the snippet, in their order.
	Spans []Span
}

// Span is a part of a snippet.
type Span struct {
	Text string
	// Keyword says that it is, or belongs to, the keyword.
	Keyword bool
	// Changed says that it is part of what was added or removed; the rest is context.
	Changed bool
}

// Budget bounds a Message. Lengths are counted by Length.
type Budget struct {
	// Total bounds the sum of all texts, Line the snippet of one difference, Lines how many
	// there are. What is 0 is not bounded.
	Total, Line, Lines int
	// Length counts a text; nil means its runes. See Bytes and UTF16.
	Length func(string) int
}
