package render

import (
	"strings"

	"golang.org/x/text/width"
)

// Columns is how wide s is on a terminal.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// Wrap breaks the lines of s at blanks, so that none is wider than columns. What follows a
// break begins below the first character of its line, indented by hang more columns. A word
// that is wider than the room stays whole. With 0 columns nothing is broken.
func Wrap(s string, columns, hang int) string {
	if columns <= 0 {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if Columns(line) <= columns {
			continue
		}
		text := strings.TrimLeft(line, " ")
		indent := len(line) - len(text)
		var b strings.Builder
		b.WriteString(line[:indent])
		column, begun := indent, false
		for word := range strings.SplitSeq(text, " ") {
			n := Columns(word)
			switch {
			case !begun:
			case column+1+n > columns:
				b.WriteString("\n" + strings.Repeat(" ", indent+hang))
				column = indent + hang
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += n
			begun = true
		}
		lines[i] = b.String()
	}
	return strings.Join(lines, "\n")
}
