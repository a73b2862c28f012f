package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/internal/layout"
	"github.com/vokter/vokter/pipeline"
)

// Blank is the zero-width space. Between two characters it keeps a chat program from
// seeing a mention, a tag or an address in them; nobody sees it.
const Blank = "\u200b"

// LineCost is what a difference takes in Markdown at most besides its texts, in runes.
const LineCost = 32

// Markdown is what m says below its title: the differences as quotes, with the keyword
// bold and removed text struck. escape makes a text literal within a line.
func Markdown(m layout.Message, escape func(string) string) string {
	var parts []string
	if m.Reason != "" {
		parts = append(parts, Literal(m.Reason, escape))
	}
	for _, l := range m.Lines {
		keywords := escape(strings.Join(l.Keywords, ", "))
		parts = append(parts, `\`+l.Sign()+" "+keywords+"\n> "+guarded(l.Text())+snippet(l, escape))
	}
	if len(m.Pages) > 0 {
		var pages []string
		for _, page := range m.Pages {
			pages = append(pages, Literal(page, escape))
		}
		parts = append(parts, strings.Join(pages, "\n"))
	}
	if left := m.Left(); left != "" {
		parts = append(parts, left)
	}
	return strings.Join(parts, "\n\n")
}

// Literal returns s as a line of Markdown that shows s.
func Literal(s string, escape func(string) string) string { return guarded(s) + escape(s) }

// Plain is m as plain text of at most limit UTF-16 code units, written in Markdown.
func Plain(m layout.Message, limit int, escape func(string) string) string {
	literal := func(text string) string {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			lines[i] = Literal(line, escape)
		}
		return strings.Join(lines, "\n")
	}
	return literal(layout.Cut(m.Plain(), limit, func(s string) int { return layout.UTF16(literal(s)) }))
}

// guarded returns what has to stand before s at the beginning of a line, so that it is no
// heading, list, quote or rule.
func guarded(s string) string {
	if r, _ := utf8.DecodeRuneInString(s); s == "" || unicode.IsLetter(r) {
		return ""
	}
	return Blank
}

// snippet is the snippet of l.
func snippet(l layout.Line, escape func(string) string) string {
	var b strings.Builder
	for spans := Spans(l); len(spans) > 0; {
		n, run := 0, ""
		for ; n < len(spans) && spans[n].Changed == spans[0].Changed; n++ {
			text := escape(spans[n].Text)
			if spans[n].Keyword {
				text = mark("**", text)
			}
			run += text
		}
		if spans[0].Changed {
			run = mark("~~", run)
		}
		b.WriteString(run)
		spans = spans[n:]
	}
	return b.String()
}

// mark puts the mark around s, but within its outer blanks: beside one it marks nothing.
func mark(mark, s string) string {
	core := strings.Trim(s, " ")
	if core == "" {
		return s
	}
	before, after, _ := strings.Cut(s, core)
	return before + mark + core + mark + after
}

// Spans are the spans of l by what can be seen: Changed says only of removed text that it
// is, and neighbours that look the same are one.
func Spans(l layout.Line) []layout.Span {
	var spans []layout.Span
	for _, s := range l.Spans {
		s.Changed = s.Changed && l.Event == pipeline.Removed
		if n := len(spans); n > 0 && spans[n-1].Changed == s.Changed && spans[n-1].Keyword == s.Keyword {
			spans[n-1].Text += s.Text
			continue
		}
		spans = append(spans, s)
	}
	return spans
}

// Set is a set of characters of ASCII.
type Set [256]bool

// Chars returns the set of the characters of ASCII in s.
func Chars(s string) *Set {
	var set Set
	for i := range len(s) {
		set[s[i]] = true
	}
	return &set
}

// Count is how many characters of text are in the set.
func (s *Set) Count(text string) int {
	n := 0
	for i := range len(text) {
		if s[text[i]] {
			n++
		}
	}
	return n
}

// Escape returns s with each of the special characters as write writes it. It gets the
// neighbours as well: the rune before, and the one after, or a letter where s ends, since
// more may follow there.
func Escape(s string, special *Set, write func(b *strings.Builder, before rune, char byte, after rune)) string {
	var b strings.Builder
	done := 0 // s[:done] is written
	for i := range len(s) {
		if !special[s[i]] {
			continue
		}
		if done == 0 {
			b.Grow(len(s) + len(s)/4)
		}
		before, after := rune(0), 'a'
		if i > 0 {
			before, _ = utf8.DecodeLastRuneInString(s[:i])
		}
		if i+1 < len(s) {
			after, _ = utf8.DecodeRuneInString(s[i+1:])
		}
		b.WriteString(s[done:i])
		write(&b, before, s[i], after)
		done = i + 1
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// Joins reports whether what stands between before and after may join them to an address,
// a mention or the like: a word follows, and it is not between digits as in 10:30.
func Joins(before, after rune) bool {
	return Word(after) && (!unicode.IsDigit(before) || !unicode.IsDigit(after))
}

// Word reports whether r belongs to a word.
func Word(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// Target makes a URL fit for the target of a link.
var Target = strings.NewReplacer(
	"<", "%3C", ">", "%3E", "(", "%28", ")", "%29", "[", "%5B", "]", "%5D", "|", "%7C", `\`, "%5C", "`", "%60",
)

// Values is how the values of a template are written: the address of the page as one to
// follow, all else as escape does.
func Values(m layout.Message, escape func(string) string) func(string) string {
	return func(s string) string {
		if s == m.URL {
			return Target.Replace(s)
		}
		return escape(s)
	}
}
