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
		_, what, _ := strings.Cut(l.Head(), " ")
		parts = append(parts, `\`+l.Sign()+" "+escape(what)+"\n> "+linePrefix(firstText(l))+formatSnippet(l, escape))
	}
	if len(m.Pages) > 0 {
		var pages []string
		for _, page := range m.Pages {
			pages = append(pages, Literal(page.String(), escape))
		}
		parts = append(parts, strings.Join(pages, "\n"))
	}
	if left := m.Left(); left != "" {
		parts = append(parts, left)
	}
	if m.Link != "" {
		parts = append(parts, "["+linkLabel+"](<"+strings.ReplaceAll(Target.Replace(m.Link), "&", "&amp;")+">)")
	}
	return strings.Join(parts, "\n\n")
}

// Literal returns s as a line of Markdown that shows s.
func Literal(s string, escape func(string) string) string { return linePrefix(s) + escape(s) }

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

// linePrefix returns the prefix that keeps s at the beginning of a line from being a heading,
// list, quote or rule.
func linePrefix(s string) string {
	if r, _ := utf8.DecodeRuneInString(s); s == "" || unicode.IsLetter(r) {
		return ""
	}
	return Blank
}

// firstText returns the text of the first span of l.
func firstText(l Line) string {
	if len(l.Spans) == 0 {
		return ""
	}
	return l.Spans[0].Text
}

// formatSnippet returns the snippet of l in Markdown.
func formatSnippet(l Line, escape func(string) string) string {
	var b strings.Builder
	for looks := Looks(l); len(looks) > 0; {
		n, run := 0, ""
		for ; n < len(looks) && looks[n].Struck == looks[0].Struck; n++ {
			text := escape(looks[n].Text)
			if looks[n].Bold {
				text = markText("**", text)
			}
			run += text
		}
		if looks[0].Struck {
			run = markText("~~", run)
		}
		b.WriteString(run)
		looks = looks[n:]
	}
	return b.String()
}

// markText puts mark around s, inside its outer blanks, because a mark beside a blank has no
// effect. Nor has one between a letter and a sign, as in "**€**10", so a sign is kept from the mark.
func markText(mark, s string) string {
	core := strings.Trim(s, " ")
	first, _ := utf8.DecodeRuneInString(core)
	last, _ := utf8.DecodeLastRuneInString(core)
	open, end := mark, mark
	if isSignInMarkdown(first) {
		open += Blank
	}
	if isSignInMarkdown(last) {
		end = Blank + end
	}
	return markInside(open, s, end)
}

// isSignInMarkdown reports whether r is punctuation or a symbol, other than the mark of a part that is marked already.
func isSignInMarkdown(r rune) bool { return r != '*' && (unicode.IsPunct(r) || unicode.IsSymbol(r)) }

// Look is a part of a snippet, with its format.
type Look struct {
	Text string
	// Bold is a keyword. If the subscription has no keywords, it is what was added.
	Bold bool
	// Struck is what was removed.
	Struck bool
}

// Looks returns the spans of l with their formats. Adjacent spans of one format are joined.
func Looks(l Line) []Look {
	var looks []Look
	marks := l.Marks()
	for _, s := range l.Spans {
		next := Look{s.Text, s.Keyword || marks && s.Event == pipeline.Added, s.Event == pipeline.Removed}
		if n := len(looks); n > 0 && looks[n-1].Bold == next.Bold && looks[n-1].Struck == next.Struck {
			looks[n-1].Text += next.Text
			continue
		}
		looks = append(looks, next)
	}
	return looks
}

var (
	mrkdwnEscapes   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	markdownEscapes = strings.NewReplacer(escapePairs("\\`*_{}[]()<>#+-.!|~")...)
)

// escapePairs maps each character of special to itself behind a backslash, and keeps "@" from
// being a mention.
func escapePairs(special string) []string {
	list := []string{"@", "@\u200b"}
	for _, r := range special {
		list = append(list, string(r), `\`+string(r))
	}
	return list
}

// Mrkdwn escapes s for Slack's mrkdwn, so that it mentions nobody and hides no link. Characters
// such as asterisks still format it, because Slack has no escape for them.
func Mrkdwn(s string) string { return mrkdwnEscapes.Replace(s) }

// HTML escapes s for the text of HTML and the values of its attributes.
func HTML(s string) string { return html.EscapeString(s) }

// Markdown escapes s for the Markdown of Discord, Mattermost and Gotify: it formats
// nothing and mentions nobody.
func Markdown(s string) string { return markdownEscapes.Replace(s) }

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
