package stdout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Limits of the printed text, in runes and in columns.
const (
	maxSnippet = 240
	maxURL     = 200

	maxKeywordColumn = 24
	minTextColumn    = 30
)

// Styles (ECMA-48 SGR).
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	green  = "\x1b[32m"
	red    = "\x1b[31m"
	strike = "\x1b[9m"
	yellow = "\x1b[33m"
)

// printer prints notifications for people.
type printer struct {
	color    bool
	location *time.Location
	// width is the width of the terminal in columns. 0 means unknown: lines are not broken.
	width int
}

// format returns n as a heading, a line for each difference and an empty line.
func (p printer) format(n pipeline.Notification) ([]byte, error) {
	var b bytes.Buffer
	m := render.MessageOf(n, render.Budget{Line: maxSnippet, Location: p.location})
	at := "--:--:--"
	if !n.Time.IsZero() {
		at = n.Time.In(p.location).Format("2 Jan 15:04:05")
	}
	b.WriteString(p.style(at, dim))
	if n.Health != nil {
		b.WriteString(p.formatHealth(m) + "\n")
		return b.Bytes(), nil
	}
	page := render.Short(render.Page(n.URL), maxURL)
	if m.Title != "" && n.Title != "" {
		b.WriteString("  " + p.style(m.Title, bold))
	}
	b.WriteString("  " + p.style(page, dim))
	if much := render.Collected(n); much != "" {
		b.WriteString("  " + much)
	}
	b.WriteByte('\n')
	if m.Reason != "" {
		b.WriteString(p.formatNote("!", yellow, m.Reason))
	}
	if n.Value != nil {
		b.WriteString(p.formatNote("~", yellow, m.Headline))
	}
	width := 0
	for _, l := range m.Lines {
		if w := render.Columns(joinKeywords(l)); w <= maxKeywordColumn {
			width = max(width, w)
		}
	}
	for _, l := range m.Lines {
		b.WriteString(p.formatLine(l, width))
	}
	if left := m.Left(); left != "" {
		b.WriteString("  " + p.style("... "+left, dim) + "\n")
	}
	if m.Link != "" {
		b.WriteString("  " + p.style(m.Link, dim) + "\n")
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

func joinKeywords(l render.Line) string { return strings.Join(l.Keywords, ", ") }

// formatLine returns l, with what follows the keywords in the column after pad.
func (p printer) formatLine(l render.Line, pad int) string {
	color := map[pipeline.Event]string{pipeline.Added: green, pipeline.Removed: red, "": yellow}[l.Event]
	if len(l.Keywords) == 0 {
		text, styleAt := p.textOf(l)
		head, indent := "  "+p.style(l.Sign(), color+bold)+" ", 4
		if l.IsWhole() { // all of it is new or gone
			head, indent = head+p.style(l.What()+":", color+bold)+" ", indent+len(l.What())+2
		}
		return head + p.paragraph(text, indent, styleAt) + "\n"
	}
	keywords := joinKeywords(l)
	head := "  " + p.style(l.Sign(), color+bold) + " " + p.style(keywords, color+bold)
	used := render.Columns(keywords)
	indent := 4 + max(pad, used) + 2
	head += strings.Repeat(" ", indent-4-used)
	if p.width > 0 && p.width-indent < minTextColumn { // below the keywords
		head, indent = head+"\n      ", 6
	}
	text, styleAt := p.textOf(l)
	return head + p.paragraph(text, indent, styleAt) + "\n"
}

// textOf returns the snippet of l and the style of each byte. Colours stand for the marks of what was removed and added.
func (p printer) textOf(l render.Line) (text string, styleAt func(int) string) {
	if !p.color {
		return l.Text(), func(int) string { return "" }
	}
	marks := l.Marks()
	for _, s := range l.Spans {
		text += s.Text
	}
	return text, func(i int) string {
		for _, s := range l.Spans {
			if i >= len(s.Text) {
				i -= len(s.Text)
				continue
			}
			style := map[pipeline.Event]string{pipeline.Added: green, pipeline.Removed: red + strike, "": ""}[s.Event]
			if s.Keyword || marks && s.Event == pipeline.Added {
				style += bold
			}
			return style
		}
		return ""
	}
}

// paragraph returns s in lines that begin after indent columns where the width is known.
// styleAt gives the style of each byte.
func (p printer) paragraph(s string, indent int, styleAt func(int) string) string {
	room := 0
	if p.width > 0 {
		room = max(p.width-indent, minTextColumn)
	}
	var b strings.Builder
	current := ""
	write := func(text, style string) {
		if p.color && style != current {
			if current != "" {
				b.WriteString(reset)
			}
			b.WriteString(style)
			current = style
		}
		b.WriteString(text)
	}
	column := 0
	// place begins a new line where n more columns do not fit.
	place := func(n int, style string) {
		switch {
		case column == 0:
		case room > 0 && column+1+n > room:
			write("\n"+strings.Repeat(" ", indent), "")
			column = 0
		default:
			write(" ", style)
			column++
		}
		column += n
	}
	word := func(from, to int) {
		place(render.Columns(s[from:to]), blankStyle(styleAt, from))
		for from < to {
			style, next := styleAt(from), from+1
			for next < to && styleAt(next) == style {
				next++
			}
			write(s[from:next], style)
			from = next
		}
	}
	for i := 0; i < len(s); {
		n := strings.IndexByte(s[i:], ' ')
		if n < 0 {
			n = len(s) - i
		}
		if n > 0 {
			word(i, i+n)
		}
		i += n + 1
	}
	write("", "")
	return b.String()
}

// blankStyle returns the style of the blank before byte i: that of its neighbours, if they agree.
func blankStyle(styleAt func(int) string, i int) string {
	if i < 2 || styleAt(i-2) != styleAt(i) {
		return ""
	}
	return styleAt(i)
}

func (p printer) style(s, style string) string {
	if !p.color || s == "" {
		return s
	}
	return style + s + reset
}

// formatHealth returns the rest of the heading, the reason and the pages of a health event.
func (p printer) formatHealth(m render.Message) string {
	color, sign := yellow, "!"
	if m.Good {
		color, sign = green, "*"
	}
	head := "  " + p.style(m.Headline, color+bold)
	if m.Title != "" {
		head += "  " + p.style(m.Title, dim)
	}
	body := p.formatNote(sign, color, m.Reason)
	for _, u := range m.Pages {
		body += "    " + p.style(u.String(), dim) + "\n"
	}
	return head + "\n" + body
}

// formatNote returns text after sign, in lines of the terminal's width.
func (p printer) formatNote(sign, color, text string) string {
	body := p.paragraph(text, 2+utf8.RuneCountInString(sign)+1, func(int) string { return color })
	return "  " + p.style(sign, color) + " " + body + "\n"
}

// encodeJSON returns the documented body in one line.
func encodeJSON(n pipeline.Notification) ([]byte, error) {
	if n.Diffs == nil {
		n.Diffs = []pipeline.Diff{}
	}
	return EncodeJSON(n)
}

// EncodeJSON returns v in one line. Characters that could steer a terminal are escaped, which
// no reader of JSON can tell from themselves.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	line := b.Bytes()
	out := make([]byte, 0, len(line))
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		if r != '\n' && render.Steers(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		} else {
			out = append(out, line[:size]...)
		}
		line = line[size:]
	}
	return out, nil
}
