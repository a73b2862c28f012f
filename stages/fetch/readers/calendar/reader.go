// Package calendar reads iCalendar.
package calendar

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// Bounds of reading.
const (
	// maxDepth is how deep components may be nested.
	maxDepth = 32
	// linesPerCheck is how many lines are read between two looks at the context.
	linesPerCheck = 4096
)

// Reader reads iCalendar (RFC 5545) in UTF-8. An event, task or journal entry is an item. Its
// properties that people see are blocks, such as "Start: 2026-11-21 10:00"; those that change
// with every export, such as DTSTAMP, do not count.
type Reader struct{}

var _ pipeline.Reader = Reader{}

// New returns a Reader.
func New() Reader { return Reader{} }

// ContentTypes returns the media type of iCalendar.
func (Reader) ContentTypes() []string { return []string{"text/calendar"} }

// Extractor names the rules by which the text is made; it changes with them.
func (Reader) Extractor() string { return "calendar/1" }

// propertyLabels are the properties that count, and what stands before their values.
var propertyLabels = map[string]string{
	"SUMMARY": "", "DESCRIPTION": "", "LOCATION": "Location: ", "URL": "", "STATUS": "Status: ", "CATEGORIES": "Categories: ",
	"DTSTART": "Start: ", "DTEND": "End: ", "DUE": "Due: ", "DURATION": "Duration: ", "RRULE": "Repeats: ", "COMPLETED": "Completed: ",
	"ORGANIZER": "Organizer: ", "ATTENDEE": "Attendee: ", "COMMENT": "", "CONTACT": "Contact: ", "PERCENT-COMPLETE": "Done: ", "X-WR-CALNAME": "", "NAME": "",
}

// Read returns the text of view. To its line ranges and regular expressions, a line is a property
// as it is shown, with the number that it has in the page. Read returns ctx's error if that is
// done first.
func (Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	wanted, err := selector.NewText(view)
	if err != nil {
		return pipeline.Text{}, selector.Unreadable(err)
	}
	t := pipeline.Text{Language: blocks.LanguageTag(raw.ContentLanguage)}
	var b blocks.Builder
	var open []string
	rest := bytes.TrimPrefix(raw.Body, []byte("\ufeff"))
	for n, next := 1, 0; len(rest) > 0; n = next {
		if n%linesPerCheck == 0 && ctx.Err() != nil {
			return pipeline.Text{}, ctx.Err()
		}
		var line string
		line, rest, next = unfoldLine(rest, n)
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, parameters, value, ok := splitProperty(line)
		if !ok {
			return pipeline.Text{}, blocks.Unreadable("the page is not valid iCalendar: line %d has no name and value", n)
		}
		switch {
		case len(open) == 0 && (name != "BEGIN" || !strings.EqualFold(value, "VCALENDAR")):
			return pipeline.Text{}, blocks.Unreadable("the page is not valid iCalendar: line %d is outside of a calendar", n)
		case name == "BEGIN":
			if len(open) == maxDepth {
				return pipeline.Text{}, blocks.Unreadable("the page is nested more than %d deep, at line %d", maxDepth, n)
			}
			open = append(open, strings.ToUpper(value))
			b.ItemStart()
			continue
		case name == "END":
			if open[len(open)-1] != strings.ToUpper(value) {
				return pipeline.Text{}, blocks.Unreadable("the page is not valid iCalendar: line %d ends %.80q, but %s is open", n, value, open[len(open)-1])
			}
			open = open[:len(open)-1]
			b.ItemEnd()
			continue
		case slices.Contains(open, "VTIMEZONE") || slices.Contains(open, "VALARM"):
			continue
		}
		label, ok := propertyLabels[name]
		if !ok {
			continue
		}
		if strings.HasSuffix(name, "NAME") && t.Title == "" && len(open) == 1 {
			t.Title = blocks.Line(unescapeText(value))
		}
		parts := []string{label + formatValue(name, parameters, value)}
		if !wanted.All() {
			if parts, err = wanted.Line(ctx, n, parts[0]); err != nil {
				return pipeline.Text{}, err
			}
		}
		for _, part := range parts {
			b.Lines([]byte(part))
			b.Break()
		}
		if b.Len() > pipeline.MaxText {
			return pipeline.Text{}, blocks.TooLarge()
		}
	}
	if len(open) > 0 {
		return pipeline.Text{}, blocks.Unreadable("the page is not valid iCalendar: it ends within %s, at %s", open[len(open)-1], blocks.Position(raw.Body, len(raw.Body)))
	}
	if err := wanted.End(); err != nil {
		return pipeline.Text{}, err
	}
	t.Content = b.Content()
	t.Empty = blocks.Blank(t.Content)
	return t, nil
}

// unfoldLine returns the property that begins on line n, and the number of the line behind it. A line
// that begins with white space goes on with the one before.
func unfoldLine(body []byte, n int) (line string, rest []byte, next int) {
	var b strings.Builder
	for {
		part, after, _ := bytes.Cut(body, []byte{'\n'})
		b.Write(bytes.TrimSuffix(part, []byte{'\r'}))
		body = after
		n++
		if len(body) == 0 || body[0] != ' ' && body[0] != '\t' {
			return b.String(), body, n
		}
		body = body[1:]
	}
}

// splitProperty splits "NAME;PARAMETERS:VALUE". A quoted parameter may hold a colon.
func splitProperty(line string) (name, parameters, value string, ok bool) {
	quoted := false
	for i, c := range line {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ':' && !quoted:
			name, parameters, _ = strings.Cut(line[:i], ";")
			return strings.ToUpper(name), parameters, line[i+1:], name != ""
		}
	}
	return "", "", "", false
}

// formatValue returns value as people read it.
func formatValue(name, parameters, value string) string {
	switch name {
	case "DTSTART", "DTEND", "DUE", "COMPLETED":
		return formatDate(value) + zoneSuffix(parameterValue(parameters, "TZID"))
	case "ORGANIZER", "ATTENDEE":
		if cn := parameterValue(parameters, "CN"); cn != "" {
			return cn
		}
		return strings.TrimPrefix(strings.TrimPrefix(value, "mailto:"), "MAILTO:")
	}
	return unescapeText(value)
}

func zoneSuffix(zone string) string {
	if zone == "" {
		return ""
	}
	return " " + zone
}

// formatDate writes 20261121T100000Z as 2026-11-21 10:00 UTC, and leaves alone what has another form.
func formatDate(value string) string {
	day, clock, timed := strings.Cut(value, "T")
	if len(day) != 8 || !isDigits(day) {
		return value
	}
	out := day[:4] + "-" + day[4:6] + "-" + day[6:]
	if !timed {
		return out
	}
	clock, utc := strings.CutSuffix(clock, "Z")
	if len(clock) != 6 || !isDigits(clock) {
		return value
	}
	out += " " + clock[:2] + ":" + clock[2:4]
	if utc {
		out += " UTC"
	}
	return out
}

func isDigits(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// parameterValue returns the parameter of this name, or "".
func parameterValue(parameters, name string) string {
	for p := range strings.SplitSeq(parameters, ";") {
		if key, value, ok := strings.Cut(p, "="); ok && strings.EqualFold(key, name) {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

var unescapeText = strings.NewReplacer(`\n`, "\n", `\N`, "\n", `\,`, ",", `\;`, ";", `\\`, `\`).Replace
