package telegram

import (
	"strings"
	"unicode"

	"github.com/vokter/vokter/internal/render"
)

// Bounds of Telegram, and how much plain text says, in UTF-16 code units; and how many
// entities it looks at.
const (
	maxText     = 4096
	maxPlain    = 1000
	maxEntities = 100
)

// budget keeps the text within its bound. A line costs a sign, two line ends and blanks.
var budget = render.Budget{Total: maxText - 64, Lines: 20, LineCost: 8, Length: length}

// length is at least as much as s takes.
func length(s string) int { return render.UTF16(s) + special.Count(s) }

// special are the characters that Telegram may make a link with.
var special = render.Chars("@#$./")

// inert breaks what Telegram itself would make a link of, such as mentions, commands,
// hashtags and addresses, by a character that nobody sees.
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

// entity says how a part of a text looks. Offset and Length are in UTF-16 code units.
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

// style makes an entity of all that write writes.
func (w *writer) style(e entity, write func()) {
	e.Offset = w.size
	at := len(w.entities)
	w.entities = append(w.entities, e) // the outer one stands first
	write()
	if w.entities[at].Length = w.size - e.Offset; w.size == e.Offset {
		w.entities = w.entities[:at] // Telegram takes no empty one
	}
}

// formatted is m as text with entities.
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
		w.put("\n\n" + l.Sign() + " " + inert(strings.Join(l.Keywords, ", ")) + "\n")
		w.style(entity{Type: "blockquote"}, func() { w.snippet(l) })
	}
	for i, page := range m.Pages {
		if i == 0 {
			w.put("\n")
		}
		w.put("\n" + inert(page))
	}
	if left := m.Left(); left != "" {
		w.put("\n\n" + left)
	}
	return w.text.String(), w.entities[:min(len(w.entities), maxEntities)]
}

// snippet writes the snippet of l, with the keyword bold and removed text struck.
func (w *writer) snippet(l render.Line) {
	for _, s := range render.Spans(l) {
		write := func() { w.put(inert(s.Text)) }
		if s.Keyword {
			bold := write
			write = func() { w.style(entity{Type: "bold"}, bold) }
		}
		if s.Changed {
			struck := write
			write = func() { w.style(entity{Type: "strikethrough"}, struck) }
		}
		write()
	}
}
