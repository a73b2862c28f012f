package stdout

import (
	"bytes"
	"fmt"
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
}

// print returns n as a heading, a line for each difference and an empty line.
func (p printer) print(n pipeline.Notification) ([]byte, error) {
	var b bytes.Buffer
	at := "--:--:--"
	if !n.Time.IsZero() {
		at = n.Time.In(p.location).Format("2 Jan 15:04:05")
	}
	b.WriteString(p.style(at, dim))
	if title := short(clean(n.Title), maxTitle); title != "" {
		b.WriteString("  " + p.style(title, bold))
	}
	b.WriteString("  " + p.style(short(pageName(n.URL), maxURL), dim) + "\n")
	if n.Status == pipeline.StatusTimeout {
		b.WriteString("  " + p.style("! checks of this page failed too often; it is not watched any more", yellow) + "\n")
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
	s := clean(raw)
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		u.User = nil
		s = strings.TrimPrefix(u.String(), u.Scheme+"://")
	}
	return s
}

// line is one difference with all keywords found in it.
type line struct {
	pipeline.Diff
	found []string
}

func (l line) keywords() string { return strings.Join(l.found, ", ") }

func lines(diffs []pipeline.Diff) []line {
	var out []line
	for _, d := range diffs {
		same := func(l line) bool {
			return l.Event == d.Event && l.Offset == d.Offset && l.Text == d.Text && l.Snippet == d.Snippet
		}
		i := slices.IndexFunc(out, same)
		if i < 0 {
			out = append(out, line{Diff: d})
			i = len(out) - 1
		}
		out[i].found = append(out[i].found, short(clean(d.Keyword), maxKeyword))
	}
	return out
}

// line prints l, with what follows the keywords in the column after width.
func (p printer) line(l line, width int) string {
	sign, color, mark := "+", green, green+bold
	if l.Event == pipeline.Removed {
		sign, color, mark = "-", red, red+strike
	}
	text, snippet := clean(l.Text), clean(l.Snippet)
	if snippet == "" {
		snippet = text
	}
	at := max(strings.Index(snippet, text), 0)
	shown, shift := window(snippet, at, maxSnippet)
	// What was cut away can hold an end of the text.
	from := min(max(at+shift, 0), len(shown))
	to := min(max(from+len(text), from), len(shown))
	if !strings.HasPrefix(snippet[at:], text) || text == "" {
		from, to = 0, 0
	}
	keywords := l.keywords()
	pad := strings.Repeat(" ", max(width-utf8.RuneCountInString(keywords), 0))
	return fmt.Sprintf("  %s %s%s  %s%s%s\n", p.style(sign, color+bold), p.style(keywords, color+bold), pad,
		shown[:from], p.style(shown[from:to], mark), shown[to:])
}

func (p printer) style(s, style string) string {
	if !p.color || s == "" {
		return s
	}
	return style + s + reset
}

func short(s string, limit int) string {
	out, _ := window(s, 0, limit)
	return out
}
