package render

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// Blank is the zero-width space. Between two characters it keeps a chat program from
// seeing a mention, a tag or an address in them; nobody sees it.
const Blank = "\u200b"

// LineCost is what a difference takes in Markdown at most besides its texts, in runes.
const LineCost = 32

// AsMarkdown is what m says below its title: the differences as quotes, with the keyword
// bold and removed text struck. escape makes a text literal within a line.
func AsMarkdown(m Message, escape func(string) string) string {
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

// AsPlain is m as plain text of at most limit UTF-16 code units, written in Markdown.
func AsPlain(m Message, limit int, escape func(string) string) string {
	literal := func(text string) string {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			lines[i] = Literal(line, escape)
		}
		return strings.Join(lines, "\n")
	}
	return literal(Cut(m.Plain(), limit, func(s string) int { return UTF16(literal(s)) }))
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
func snippet(l Line, escape func(string) string) string {
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
func Spans(l Line) []Span {
	var spans []Span
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

var (
	mrkdwn          = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	markdownEscapes = strings.NewReplacer(pairs("\\`*_{}[]()<>#+-.!|~")...)
)

// pairs maps each character of special to itself behind a backslash, and keeps "@" from
// being a mention.
func pairs(special string) []string {
	list := []string{"@", "@\u200b"}
	for _, r := range special {
		list = append(list, string(r), `\`+string(r))
	}
	return list
}

// Mrkdwn escapes s for Slack's mrkdwn: it can mention nobody and hide no link. Asterisks
// and the like still format it, since Slack knows no escape for them.
func Mrkdwn(s string) string { return mrkdwn.Replace(s) }

// HTML escapes s for the text of HTML and the values of its attributes.
func HTML(s string) string { return html.EscapeString(s) }

// escapeMarkdown escapes s for the Markdown of Discord, Mattermost and Gotify: it formats
// nothing and mentions nobody.
func escapeMarkdown(s string) string { return markdownEscapes.Replace(s) }

// Target makes a URL fit for the target of a link.
var Target = strings.NewReplacer(
	"<", "%3C", ">", "%3E", "(", "%28", ")", "%29", "[", "%5B", "]", "%5D", "|", "%7C", `\`, "%5C", "`", "%60",
)

// Values is how the values of a template are written: the address of the page as one to
// follow, all else as escape does.
func Values(m Message, escape func(string) string) func(string) string {
	return func(s string) string {
		if s == m.URL {
			return Target.Replace(s)
		}
		return escape(s)
	}
}
