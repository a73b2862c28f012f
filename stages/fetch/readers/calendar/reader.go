// Package calendar reads iCalendar.
package calendar

import (
	"bytes"
	"context"
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
func (Reader) Extractor() string { return "calendar/3" }

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
	body := blocks.LineFeeds(bytes.TrimPrefix(raw.Body, []byte("\ufeff")))
	c := components{passed: &blocks.Passed{}, body: body}
	rest := string(body)
	for n, next := 1, 0; len(rest) > 0; n = next {
		if n%linesPerCheck == 0 && ctx.Err() != nil {
			return pipeline.Text{}, ctx.Err()
		}
		c.at = len(body) - len(rest)
		var line string
		line, rest, next = c.unfoldLine(rest, n)
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, parameters, value, ok := splitProperty(line)
		switch {
		case ok && name == "BEGIN" && (len(c.open) > 0 || strings.EqualFold(strings.TrimSpace(value), calendarName)):
			if len(c.open) == maxDepth {
				return pipeline.Text{}, blocks.Unreadable("the page is nested more than %d deep, at line %d", maxDepth, n)
			}
			c.begin(&b, strings.ToUpper(strings.TrimSpace(value)))
			continue
		case len(c.open) == 0:
			c.note("a line outside of the calendar was passed over", "lines outside of the calendar were passed over")
			continue
		case !ok:
			c.note("a line without name and value was passed over", "lines without name and value were passed over")
			continue
		case name == "END":
			c.end(&b, strings.ToUpper(strings.TrimSpace(value)))
			continue
		case name == "UID" || name == "RECURRENCE-ID":
			if !c.isSilent() {
				c.identify(&b, name, value)
			}
			continue
		}
		label, ok := propertyLabels[name]
		if !ok || c.isSilent() {
			continue
		}
		if strings.HasSuffix(name, "NAME") && t.Title == "" && len(c.open) == 1 {
			t.Title = blocks.Line(unescapeText(value))
		}
		err := wanted.Blocks(ctx, n, label+formatValue(name, parameters, value), func(part string) {
			b.Lines([]byte(part))
			b.Break()
		})
		if err != nil {
			return pipeline.Text{}, err
		}
		if b.Len() > pipeline.MaxText {
			return pipeline.Text{}, blocks.TooLarge()
		}
	}
	switch {
	case !c.found:
		return pipeline.Text{}, blocks.Unreadable("the page is not valid iCalendar: it has no BEGIN:VCALENDAR, up to %s", blocks.Position(body, len(body)))
	case len(c.open) > 0:
		c.at = len(body)
		c.note("the page breaks off within a calendar", "")
	}
	if err := wanted.End(); err != nil {
		return pipeline.Text{}, err
	}
	t.Content, t.Passed = b.Content(), c.passed.Sentences()
	t.Keys = b.Keys()
	t.Empty = blocks.Blank(t.Content)
	return t, nil
}

// splitProperty splits "NAME;PARAMETERS:VALUE". A quoted parameter may hold a colon.
func splitProperty(line string) (name, parameters, value string, ok bool) {
	quoted := false
	for i := range len(line) {
		switch c := line[i]; {
		case c == '"':
			quoted = !quoted
		case c == ':' && !quoted:
			name, parameters, _ = strings.Cut(line[:i], ";")
			return strings.ToUpper(name), parameters, line[i+1:], name != "" && nameLength(name) == len(name)
		}
	}
	return "", "", "", false
}

// nameLength returns how long the name is with which s begins.
func nameLength(s string) int {
	for i := range len(s) {
		if c := s[i]; c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return i
		}
	}
	return len(s)
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

// unescapeText returns the text that value is the escape of. Most have none.
func unescapeText(value string) string {
	if strings.IndexByte(value, '\\') < 0 {
		return value
	}
	return escapes.Replace(value)
}

var escapes = strings.NewReplacer(`\n`, "\n", `\N`, "\n", `\,`, ",", `\;`, ";", `\\`, `\`)
