package matrix

import (
	"strings"

	"github.com/vokter/vokter/internal/render"
)

// lineCost is the most bytes that a difference takes in HTML besides its texts.
const lineCost = 120

// formatHTML returns m as HTML. It uses only elements that Matrix allows.
func formatHTML(m render.Message) string {
	var b strings.Builder
	b.WriteString("<p><strong>" + render.HTML(m.Headline) + "</strong>")
	switch {
	case m.URL != "":
		b.WriteString(`<br><a href="` + render.HTML(m.URL) + `">` + render.HTML(m.Title) + "</a>")
	case m.Title != "":
		b.WriteString("<br>" + render.HTML(m.Title))
	}
	b.WriteString("</p>")
	paragraph := func(text string) {
		if text != "" {
			b.WriteString("<p>" + render.HTML(text) + "</p>")
		}
	}
	paragraph(m.Reason)
	for _, l := range m.Lines {
		b.WriteString("<p>" + render.HTML(l.Head()) + "</p><blockquote>")
		for _, s := range render.Looks(l) {
			b.WriteString(formatSpan(s))
		}
		b.WriteString("</blockquote>")
	}
	for _, page := range m.Pages {
		paragraph(page.String())
	}
	paragraph(m.Left())
	if m.Link != "" {
		b.WriteString(`<p><a href="` + render.HTML(m.Link) + `">What changed</a></p>`)
	}
	return b.String()
}

// formatSpan returns s with its marks as HTML.
func formatSpan(s render.Look) string {
	text := render.HTML(s.Text)
	if s.Bold {
		text = "<strong>" + text + "</strong>"
	}
	if s.Struck {
		text = "<del>" + text + "</del>"
	}
	return text
}
