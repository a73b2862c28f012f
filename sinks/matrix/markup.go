package matrix

import (
	"strings"

	"github.com/vokter/vokter/internal/chat"
	"github.com/vokter/vokter/internal/layout"
	"github.com/vokter/vokter/internal/template"
)

// lineCost is what a difference takes in HTML at most besides its texts, in bytes.
const lineCost = 120

// markup is m as HTML, of the elements that Matrix knows.
func markup(m layout.Message) string {
	var b strings.Builder
	b.WriteString("<p><strong>" + template.HTML(m.Headline) + "</strong>")
	switch {
	case m.URL != "":
		b.WriteString(`<br><a href="` + template.HTML(m.URL) + `">` + template.HTML(m.Title) + "</a>")
	case m.Title != "":
		b.WriteString("<br>" + template.HTML(m.Title))
	}
	b.WriteString("</p>")
	paragraph := func(text string) {
		if text != "" {
			b.WriteString("<p>" + template.HTML(text) + "</p>")
		}
	}
	paragraph(m.Reason)
	for _, l := range m.Lines {
		b.WriteString("<p>" + l.Sign() + " " + template.HTML(strings.Join(l.Keywords, ", ")) + "</p><blockquote>")
		for _, s := range chat.Spans(l) {
			b.WriteString(span(s))
		}
		b.WriteString("</blockquote>")
	}
	for _, page := range m.Pages {
		paragraph(page)
	}
	paragraph(m.Left())
	return b.String()
}

// span is s with its marks.
func span(s layout.Span) string {
	text := template.HTML(s.Text)
	if s.Keyword {
		text = "<strong>" + text + "</strong>"
	}
	if s.Changed {
		text = "<del>" + text + "</del>"
	}
	return text
}
