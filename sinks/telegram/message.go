package telegram

import (
	"strings"
	"unicode"

	"github.com/vokter/vokter/internal/render"
)

// Limits of Telegram and the length of the plain text, in UTF-16 code units, and the number of
// entities that Telegram reads.
const (
	maxText     = 4096
	maxPlain    = 1000
	maxEntities = 100
)

// budget keeps the text within Telegram's limit. A line costs a sign, two line ends and blanks.
var budget = render.Budget{Total: maxText - 64, Lines: 20, LineCost: 8, Length: escapedLen}

// escapedLen returns an upper limit of the length of s after breakLinks.
func escapedLen(s string) int { return render.UTF16(s) + specialChars.Count(s) }

// specialChars are the characters with which Telegram may make a link.
var specialChars = render.Chars("@#$./")

// breakLinks adds an invisible character to mentions, commands, hashtags and addresses, so that
// Telegram makes no links of them.
func breakLinks(s string) string {
	return render.EscapeChars(s, specialChars, func(b *strings.Builder, before rune, char byte, after rune) {
		b.WriteByte(char)
		switch {
		case !render.Joins(before, after):
		case char == '/' && render.Word(before), char == '.' && before == '.', char == '$' && !unicode.IsLetter(after):
		default:
			b.WriteString(render.Blank)
		}
	})
}

// entity is the format of a part of a text. Offset and Length are in UTF-16 code units.
type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	URL    string `json:"url,omitempty"`
}

// entityWriter writes a text with entities.
type entityWriter struct {
	text     strings.Builder
	size     int
	entities []entity
}

func (w *entityWriter) writeText(s string) {
	w.text.WriteString(s)
	w.size += render.UTF16(s)
}

// writeEntity adds the entity e around the text that write writes.
func (w *entityWriter) writeEntity(e entity, write func()) {
	e.Offset = w.size
	at := len(w.entities)
	w.entities = append(w.entities, e) // the outer one comes first
	write()
	if w.entities[at].Length = w.size - e.Offset; w.size == e.Offset {
		w.entities = w.entities[:at] // Telegram refuses empty entities
	}
}

// formatMessage returns m as text with entities.
func formatMessage(m render.Message) (string, []entity) {
	w := &entityWriter{}
	w.writeEntity(entity{Type: "bold"}, func() { w.writeText(breakLinks(m.Headline)) })
	if m.Title != "" {
		w.writeText("\n")
		if m.URL != "" {
			w.writeEntity(entity{Type: "text_link", URL: m.URL}, func() { w.writeText(breakLinks(m.Title)) })
		} else {
			w.writeText(breakLinks(m.Title))
		}
	}
	if m.Reason != "" {
		w.writeText("\n\n" + breakLinks(m.Reason))
	}
	for _, l := range m.Lines {
		w.writeText("\n\n" + breakLinks(l.Head()) + "\n")
		w.writeEntity(entity{Type: "blockquote"}, func() { w.writeSnippet(l) })
	}
	for i, page := range m.Pages {
		if i == 0 {
			w.writeText("\n")
		}
		w.writeText("\n" + breakLinks(page.String()))
	}
	if left := m.Left(); left != "" {
		w.writeText("\n\n" + left)
	}
	if m.Link != "" {
		w.writeText("\n\n")
		w.writeEntity(entity{Type: "text_link", URL: m.Link}, func() { w.writeText("What changed") })
	}
	return w.text.String(), w.entities[:min(len(w.entities), maxEntities)]
}

// writeSnippet writes the snippet of l, with the keyword bold and removed text struck through.
func (w *entityWriter) writeSnippet(l render.Line) {
	for _, s := range render.Looks(l) {
		write := func() { w.writeText(breakLinks(s.Text)) }
		if s.Bold {
			bold := write
			write = func() { w.writeEntity(entity{Type: "bold"}, bold) }
		}
		if s.Struck {
			struck := write
			write = func() { w.writeEntity(entity{Type: "strikethrough"}, struck) }
		}
		write()
	}
}
