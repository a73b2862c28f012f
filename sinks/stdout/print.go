package stdout

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// Bounds of what is printed, in runes.
const (
	maxSnippet = 240
	maxTitle   = 100
	maxURL     = 200
	maxKeyword = 60
	maxPad     = 24
	minColumn  = 30 // columns
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
	// width is that of the terminal in columns; 0: not known, lines are not broken.
	width int
}

// print returns n as a heading, a line for each difference and an empty line.
func (p printer) print(n pipeline.Notification) ([]byte, error) {
	var b bytes.Buffer
	at := "--:--:--"
	if !n.Time.IsZero() {
		at = n.Time.In(p.location).Format("2 Jan 15:04:05")
	}
	b.WriteString(p.style(at, dim))
	if n.Health != nil {
		b.WriteString(p.health(*n.Health) + "\n")
		return b.Bytes(), nil
	}
	if title := short(Clean(n.Title), maxTitle); title != "" {
		b.WriteString("  " + p.style(title, bold))
	}
	b.WriteString("  " + p.style(short(pageName(n.URL), maxURL), dim) + "\n")
	if n.Status == pipeline.StatusTimeout {
		why := n.Reason
		if why == "" {
			why = "its checks failed too often"
		}
		b.WriteString(p.note("!", yellow, "this page is not watched any more", why))
	}
	found, width := lines(n.Diffs), 0
	for _, l := range found {
		if w := utf8.RuneCountInString(l.keywords()); w <= maxPad {
			width = max(width, w)
		}
	}
	for _, l := range found {
		b.WriteString(p.line(l, width))
	}
	if n.Truncated {
		b.WriteString("  " + p.style("... and more", dim) + "\n")
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// pageName is the URL without its scheme.
func pageName(raw string) string {
	s := Clean(raw)
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		u.User = nil
		s = strings.TrimPrefix(u.String(), u.Scheme+"://")
	}
	return s
}

// line is one difference with keywords found in it, near one another.
type line struct {
	pipeline.Diff
	found []string
	// from and to are where the first keyword stands in the clean snippet; equal where it
	// is not seen.
	from, to int
}

func (l line) keywords() string { return strings.Join(l.found, ", ") }

// lines joins the diffs of one difference, as far as one excerpt shows their keywords.
func lines(diffs []pipeline.Diff) []line {
	var out []line
	for _, d := range diffs {
		snippet := shownText(d)
		from, to := find(snippet, Clean(d.Keyword), max(strings.Index(snippet, Clean(d.Text)), 0))
		i := slices.IndexFunc(out, func(l line) bool {
			same := l.Event == d.Event && l.Offset == d.Offset && l.Text == d.Text && l.Snippet == d.Snippet
			if !same || from == to {
				return same
			}
			start, end := window(snippet, l.from, maxSnippet)
			return from >= start && to <= end
		})
		if i < 0 {
			out = append(out, line{Diff: d, from: from, to: to})
			i = len(out) - 1
		}
		out[i].found = append(out[i].found, short(Clean(d.Keyword), maxKeyword))
	}
	return out
}

// shownText is what an excerpt is cut from.
func shownText(d pipeline.Diff) string {
	if s := Clean(d.Snippet); s != "" {
		return s
	}
	return Clean(d.Text)
}

// line prints l, with what follows the keywords in the column after pad.
func (p printer) line(l line, pad int) string {
	sign, color := "+", green
	changed := green
	if l.Event == pipeline.Removed {
		sign, color, changed = "-", red, red+strike
	}
	text, snippet := Clean(l.Text), shownText(l.Diff)
	at := strings.Index(snippet, text)
	changedTo := at + len(text)
	if at < 0 {
		at, changedTo = 0, 0
	}
	focus := at
	if l.from < l.to {
		focus = l.from
	}
	start, end := window(snippet, focus, maxSnippet)
	keywords := l.keywords()
	head := "  " + p.style(sign, color+bold) + " " + p.style(keywords, color+bold)
	used := utf8.RuneCountInString(keywords)
	indent := 4 + max(pad, used) + 2
	head += strings.Repeat(" ", indent-4-used)
	if p.width > 0 && p.width-indent < minColumn { // below the keywords
		head, indent = head+"\n      ", 6
	}
	styleAt := func(i int) string {
		style := ""
		if i >= at && i < changedTo {
			style = changed
		}
		if i >= l.from && i < l.to {
			style += bold
		}
		return style
	}
	return head + p.paragraph(snippet, start, end, indent, styleAt) + "\n"
}

// paragraph prints s[start:end], with "..." where that is cut, in lines that begin after
// indent columns where the width is known. styleAt gives the style of each byte.
func (p printer) paragraph(s string, start, end, indent int, styleAt func(int) string) string {
	room := 0
	if p.width > 0 {
		room = max(p.width-indent, minColumn)
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
	dots := func() {
		place(3, "")
		write("...", "")
	}
	word := func(from, to int) {
		place(columns(s[from:to]), blankStyle(styleAt, from))
		for from < to {
			style, next := styleAt(from), from+1
			for next < to && styleAt(next) == style {
				next++
			}
			write(s[from:next], style)
			from = next
		}
	}
	if start > 0 {
		dots()
	}
	for i := start; i < end; {
		n := strings.IndexByte(s[i:end], ' ')
		if n < 0 {
			n = end - i
		}
		if n > 0 {
			word(i, i+n)
		}
		i += n + 1
	}
	if end < len(s) {
		dots()
	}
	write("", "")
	return b.String()
}

// blankStyle is the style of the blank before byte i: that of both its sides.
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

func short(s string, limit int) string {
	if _, end := window(s, 0, limit); end < len(s) {
		return strings.TrimRight(s[:end], " ") + " ..."
	}
	return s
}
