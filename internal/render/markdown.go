package render

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// Blank is the zero-width space. It is invisible. Between two characters it keeps a chat
// program from recognising a mention, a tag or an address.
const Blank = "\u200b"

// LineCost is how many runes a difference needs at most in Markdown besides its texts.
const LineCost = 32

// AsMarkdown returns the text of m below its title: the differences as quotes, with the keyword
// bold and removed text struck through. escape escapes a text within a line.
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

// AsPlain returns m as plain text, escaped for Markdown, of at most limit UTF-16 code units.
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

// guarded returns the prefix that keeps s at the beginning of a line from being a heading,
// list, quote or rule.
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

// mark puts mark around s, inside its outer blanks, because a mark beside a blank has no
// effect.
func mark(mark, s string) string {
	core := strings.Trim(s, " ")
	if core == "" {
		return s
	}
	before, after, _ := strings.Cut(s, core)
	return before + mark + core + mark + after
}

// Spans returns the spans of l by their look: Changed is set only for removed text, and
// adjacent spans of the same look are joined.
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

// Mrkdwn escapes s for Slack's mrkdwn, so that it mentions nobody and hides no link. Characters
// such as asterisks still format it, because Slack has no escape for them.
func Mrkdwn(s string) string { return mrkdwn.Replace(s) }

// HTML escapes s for the text of HTML and the values of its attributes.
func HTML(s string) string { return html.EscapeString(s) }

// escapeMarkdown escapes s for the Markdown of Discord, Mattermost and Gotify: it formats
// nothing and mentions nobody.
func escapeMarkdown(s string) string { return markdownEscapes.Replace(s) }

// Target escapes a URL for the target of a link.
var Target = strings.NewReplacer(
	"<", "%3C", ">", "%3E", "(", "%28", ")", "%29", "[", "%5B", "]", "%5D", "|", "%7C", `\`, "%5C", "`", "%60",
)

// Values returns the escape function for the values of a template. It keeps the URL of the page
// as a link, and applies escape to everything else.
func Values(m Message, escape func(string) string) func(string) string {
	return func(s string) string {
		if s == m.URL {
			return Target.Replace(s)
		}
		return escape(s)
	}
}
