package calendar

import (
	"bytes"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

const calendarName = "VCALENDAR"

// entryNames are the components that stand in a calendar and not in each other, and partNames all others of RFC 5545
// and its extensions.
var (
	entryNames = []string{"VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY", "VTIMEZONE", "VAVAILABILITY"}
	partNames  = []string{calendarName, "VALARM", "STANDARD", "DAYLIGHT", "AVAILABLE", "PARTICIPANT", "VLOCATION", "VRESOURCE"}
)

// components are the open components of a calendar. Lines that are not valid are noted.
type components struct {
	open  []string
	found bool // of a calendar
	// uid and recurrence are what identifies the present entry: several of a series have one UID.
	uid, recurrence string
	body            []byte
	at              int // the offset of the present line
	passed          *blocks.Passed
}

func (c *components) note(one, many string) { c.passed.Note(one, many, c.body, c.at) }

// begin opens the component name. An entry ends one that has no end.
func (c *components) begin(b *blocks.Builder, name string) {
	c.found = true
	if slices.Contains(entryNames, name) {
		if i := slices.IndexFunc(c.open, func(o string) bool { return slices.Contains(entryNames, o) }); i >= 0 {
			c.note("an entry without an end was ended", "entries without an end were ended")
			c.endFrom(b, i)
		}
	}
	c.open = append(c.open, name)
	c.uid, c.recurrence = "", ""
	b.ItemStart()
}

// identify notes a property that identifies the innermost component.
func (c *components) identify(b *blocks.Builder, property, value string) {
	if property == "UID" {
		c.uid = strings.TrimSpace(value)
	} else {
		c.recurrence = strings.TrimSpace(value)
	}
	if c.uid != "" {
		b.SetKey(pipeline.NewKey(c.open[len(c.open)-1], c.uid+" "+c.recurrence))
	}
}

// end closes the component name, and those within it. A name that nobody knows ends the innermost one, and one that is
// not open ends nothing.
func (c *components) end(b *blocks.Builder, name string) {
	i := len(c.open) - 1
	for i >= 0 && c.open[i] != name {
		i--
	}
	switch {
	case i == len(c.open)-1:
	case i >= 0:
		c.note("an entry without an end was ended", "entries without an end were ended")
	case slices.Contains(entryNames, name) || slices.Contains(partNames, name) || len(c.open) == 1:
		c.note("an end of what is not open was passed over", "ends of what is not open were passed over")
		return
	default:
		i = len(c.open) - 1
		c.note("an end with an unknown name was taken for that of the present entry", "ends with an unknown name were taken for those of the present entries")
	}
	c.endFrom(b, i)
}

func (c *components) endFrom(b *blocks.Builder, i int) {
	for range c.open[i:] {
		b.ItemEnd()
	}
	c.open = c.open[:i]
}

// unfoldLine returns the property that begins on line n, and the number of the line behind it. A line that begins
// with white space goes on with the one before. So does, as a line of its own, what is no property behind one that
// has text.
func (c *components) unfoldLine(body []byte, n int) (line string, rest []byte, next int) {
	var b strings.Builder
	for {
		part, after, _ := bytes.Cut(body, []byte{'\n'})
		b.Write(bytes.TrimSuffix(part, []byte{'\r'}))
		body = after
		n++
		switch {
		case len(body) == 0:
			return b.String(), body, n
		case body[0] == ' ' || body[0] == '\t':
			body = body[1:]
		case (body[0] == '\n' || body[0] == '\r') && isLoose(body) && b.Len() > 0 && nameLength(b.String()) == b.Len(): // the value comes behind it
			c.passed.Note("a blank line within a property was passed over", "blank lines within properties were passed over", c.body, len(c.body)-len(body))
			_, body, _ = bytes.Cut(body, []byte{'\n'})
			body = body[1:]
			n++
		case len(c.open) > 1 && isLoose(body) && hasLines(b.String()):
			c.passed.Note("a line that is not folded was joined with the one before", "lines that are not folded were joined with those before", c.body, len(c.body)-len(body))
			b.WriteString(`\n`)
			if isBlank(body) {
				_, body, _ = bytes.Cut(body, []byte{'\n'})
				n++
			}
		default:
			return b.String(), body, n
		}
	}
}

// isLoose reports whether the first line of body is no property but text, or blank before a folded one.
func isLoose(body []byte) bool {
	if n := nameLength(body); n > 0 && n < len(body) && (body[n] == ':' || body[n] == ';') {
		return false
	}
	line, rest, _ := bytes.Cut(body, []byte{'\n'})
	return !isBlank(line) || len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t')
}

// isBlank reports whether the first line of s is blank.
func isBlank(s []byte) bool {
	line, _, _ := bytes.Cut(s, []byte{'\n'})
	return len(bytes.TrimSpace(line)) == 0
}

// hasLines reports whether the value of a property may have several lines.
func hasLines(property string) bool {
	name, _, ok := strings.Cut(property, ":")
	name, _, _ = strings.Cut(name, ";")
	switch strings.ToUpper(name) {
	case "BEGIN", "END", "DTSTART", "DTEND", "DUE", "DURATION", "RRULE", "COMPLETED", "STATUS":
		return false
	}
	return ok
}
