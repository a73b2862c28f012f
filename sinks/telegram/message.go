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
var budget = render.Budget{Total: maxText - 64, Lines: 20, LineCost: 8, Length: length}

// length returns an upper limit of the length of s after inert.
func length(s string) int { return render.UTF16(s) + special.Count(s) }

// special are the characters with which Telegram may make a link.
var special = render.Chars("@#$./")

// inert adds an invisible character to mentions, commands, hashtags and addresses, so that
// Telegram makes no links of them.
func inert(s string) string {
	return render.EscapeChars(s, special, func(b *strings.Builder, before rune, char byte, after rune) {
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

// writer writes a text with entities.
type writer struct {
	text     strings.Builder
	size     int
	entities []entity
}

func (w *writer) put(s string) {
	w.text.WriteString(s)
	w.size += render.UTF16(s)
}

// style adds the entity e around the text that write writes.
func (w *writer) style(e entity, write func()) {
	e.Offset = w.size
	at := len(w.entities)
	w.entities = append(w.entities, e) // the outer one comes first
	write()
	if w.entities[at].Length = w.size - e.Offset; w.size == e.Offset {
		w.entities = w.entities[:at] // Telegram refuses empty entities
	}
}

// formatted returns m as text with entities.
func formatted(m render.Message) (string, []entity) {
	w := &writer{}
	w.style(entity{Type: "bold"}, func() { w.put(inert(m.Headline)) })
	if m.Title != "" {
		w.put("\n")
		if m.URL != "" {
			w.style(entity{Type: "text_link", URL: m.URL}, func() { w.put(inert(m.Title)) })
		} else {
			w.put(inert(m.Title))
		}
	}
	if m.Reason != "" {
		w.put("\n\n" + inert(m.Reason))
	}
	for _, l := range m.Lines {
		w.put("\n\n" + inert(l.Head()) + "\n")
		w.style(entity{Type: "blockquote"}, func() { w.snippet(l) })
	}
	for i, page := range m.Pages {
		if i == 0 {
			w.put("\n")
		}
		w.put("\n" + inert(page.String()))
	}
	if left := m.Left(); left != "" {
		w.put("\n\n" + left)
	}
	if m.Link != "" {
		w.put("\n\n")
		w.style(entity{Type: "text_link", URL: m.Link}, func() { w.put("What changed") })
	}
	return w.text.String(), w.entities[:min(len(w.entities), maxEntities)]
}

// snippet writes the snippet of l, with the keyword bold and removed text struck through.
func (w *writer) snippet(l render.Line) {
	for _, s := range render.Looks(l) {
		write := func() { w.put(inert(s.Text)) }
		if s.Bold {
			bold := write
			write = func() { w.style(entity{Type: "bold"}, bold) }
		}
		if s.Struck {
			struck := write
			write = func() { w.style(entity{Type: "strikethrough"}, struck) }
		}
		write()
	}
}
