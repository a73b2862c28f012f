package calendar

import (
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

// isSilent reports whether the present line is of a time zone or an alarm, which say nothing.
func (c *components) isSilent() bool {
	return slices.Contains(c.open, "VTIMEZONE") || slices.Contains(c.open, "VALARM")
}

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
func (c *components) unfoldLine(text string, n int) (line, rest string, next int) {
	var b strings.Builder // holds line once it has more than one part
	goOn := func(between string) {
		if b.Len() == 0 {
			b.WriteString(line)
		}
		b.WriteString(between)
	}
	for first := true; ; first = false {
		part, after, _ := strings.Cut(text, "\n")
		if line = strings.TrimSuffix(part, "\r"); !first {
			b.WriteString(line)
			line = b.String()
		}
		text = after
		n++
		switch {
		case len(text) == 0:
			return line, text, n
		case text[0] == ' ' || text[0] == '\t':
			text = text[1:]
			goOn("")
		case (text[0] == '\n' || text[0] == '\r') && isLoose(text) && line != "" && nameLength(line) == len(line): // the value comes behind it
			c.passed.Note("a blank line within a property was passed over", "blank lines within properties were passed over", c.body, len(c.body)-len(text))
			_, text, _ = strings.Cut(text, "\n")
			text = text[1:]
			n++
			goOn("")
		case len(c.open) > 1 && isLoose(text) && hasLines(line):
			c.passed.Note("a line that is not folded was joined with the one before", "lines that are not folded were joined with those before", c.body, len(c.body)-len(text))
			goOn(`\n`)
			if isBlank(text) {
				_, text, _ = strings.Cut(text, "\n")
				n++
			}
		default:
			return line, text, n
		}
	}
}

// isLoose reports whether the first line of s is no property but text, or blank before a folded one.
func isLoose(s string) bool {
	if n := nameLength(s); n > 0 && n < len(s) && (s[n] == ':' || s[n] == ';') {
		return false
	}
	_, rest, _ := strings.Cut(s, "\n")
	return !isBlank(s) || len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t')
}

// isBlank reports whether the first line of s is blank.
func isBlank(s string) bool {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line) == ""
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
