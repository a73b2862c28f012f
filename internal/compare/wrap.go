package compare

import (
	"strings"
	"unicode"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Styles (ECMA-48 SGR).
const (
	escapePrefix = "\x1b["
	styleReset   = "\x1b[0m"
	styleDim     = "\x1b[2m"
	styleRemoved = "\x1b[31;9m"   // red and struck through
	styleAdded   = "\x1b[32;1;4m" // green, bold and underlined
)

// dim returns text in a weak color.
func (s Style) dim(text string) string {
	if !s.Color {
		return text
	}
	return styleDim + text + styleReset
}

// paintSign returns text, a sign, in the color of event.
func (s Style) paintSign(text string, event pipeline.Event) string {
	switch {
	case !s.Color || event == "":
		return text
	case event == pipeline.Removed:
		return "\x1b[31m" + text + styleReset
	}
	return "\x1b[32m" + text + styleReset
}

// wordPart is a part of a word within one segment.
type wordPart struct {
	text    string
	segment int
}

// wrap returns the text of segments in lines of at most width columns; 0 or less means one line. A
// word that is longer is broken. With mark, what was removed and added is marked.
func (s Style) wrap(segments []inspect.Segment, width int, mark bool) []string {
	var lines []string
	var b strings.Builder
	column, styled := 0, -1 // the segment whose style is on
	style := func(segment int) {
		if !s.Color || !mark || segment == styled {
			return
		}
		if styled >= 0 && segments[styled].Event != "" {
			b.WriteString(styleReset)
		}
		if styled = segment; segment >= 0 {
			b.WriteString(map[pipeline.Event]string{pipeline.Removed: styleRemoved, pipeline.Added: styleAdded}[segments[segment].Event])
		}
	}
	end := func() {
		style(-1)
		lines = append(lines, b.String())
		b.Reset()
		column = 0
	}
	for _, word := range splitWords(segments, mark && !s.Color) {
		n := 0
		for _, p := range word {
			n += render.Columns(p.text)
		}
		switch {
		case column == 0:
		case width > 0 && column+1+n > width:
			end()
		default:
			if word[0].segment != styled {
				style(-1)
			}
			b.WriteByte(' ')
			column++
		}
		for _, p := range word {
			style(p.segment)
			for _, r := range p.text {
				if c := render.Columns(string(r)); width > 0 && column+c > width && column > 0 {
					end()
					style(p.segment)
				}
				b.WriteRune(r)
				column += render.Columns(string(r))
			}
		}
	}
	if b.Len() > 0 || len(lines) == 0 {
		end()
	}
	return lines
}

// brackets mark what was removed and added where there are no colors.
var brackets = map[pipeline.Event][2]string{pipeline.Removed: {"[-", "-]"}, pipeline.Added: {"{+", "+}"}}

// splitWords returns the words of segments between white space, without characters that steer a
// terminal. With bracketed, brackets mark the segments that were removed or added.
func splitWords(segments []inspect.Segment, bracketed bool) [][]wordPart {
	var all [][]wordPart
	open := false // the last word goes on
	add := func(text string, segment int) {
		if !open {
			all = append(all, nil)
			open = true
		}
		word := &all[len(all)-1]
		if k := len(*word) - 1; k >= 0 && (*word)[k].segment == segment {
			(*word)[k].text += text
			return
		}
		*word = append(*word, wordPart{text, segment})
	}
	for i, s := range segments {
		marks := brackets[s.Event]
		if bracketed && marks[0] != "" {
			add(marks[0], i)
		}
		for _, r := range strings.ToValidUTF8(s.Text, "\uFFFD") {
			switch {
			case unicode.IsSpace(r):
				open = false
			case !render.Steers(r):
				add(string(r), i)
			}
		}
		if bracketed && marks[1] != "" {
			add(marks[1], i)
		}
	}
	return all
}
