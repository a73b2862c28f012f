package stdout

import (
	"unicode/utf8"

	"github.com/vokter/vokter/internal/render"
)

// health returns the rest of the heading, and what it means.
func (p printer) health(m render.Message) string {
	color, sign := yellow, "!"
	if m.Good {
		color, sign = green, "*"
	}
	head := "  " + p.style(m.Headline, color+bold)
	if m.Title != "" {
		head += "  " + p.style(m.Title, dim)
	}
	body := p.note(sign, color, m.Reason)
	for _, u := range m.Pages {
		body += "    " + p.style(u, dim) + "\n"
	}
	return head + "\n" + body
}

// note returns text behind sign, in lines of the terminal's width.
func (p printer) note(sign, color, text string) string {
	body := p.paragraph(text, 2+utf8.RuneCountInString(sign)+1, func(int) string { return color })
	return "  " + p.style(sign, color) + " " + body + "\n"
}
