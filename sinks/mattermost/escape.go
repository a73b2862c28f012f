package mattermost

import (
	"strings"

	"github.com/vokter/vokter/internal/render"
)

// special are the characters that mean something in Mattermost's Markdown within a line,
// or to what looks for mentions, channels, hashtags, emoji and addresses behind it.
var special = render.Chars("\\`*_<&[]~$.@#:")

// entities stand for those that a backslash does not make literal everywhere.
var entities = map[byte]string{'<': "&lt;", '&': "&amp;", '[': "&#91;", ']': "&#93;", '~': "&#126;", '$': "&#36;"}

// escape makes s literal. What a backslash or an entity does not hide is broken by a
// character that nobody sees.
func escape(s string) string {
	return render.EscapeChars(s, special, func(b *strings.Builder, before rune, char byte, after rune) {
		joins := render.Joins(before, after)
		switch char {
		case '\\', '`', '*', '_':
			b.WriteByte('\\')
			b.WriteByte(char)
		case '.': // of an address
			if joins && render.Word(before) {
				b.WriteByte('\\')
			}
			b.WriteByte(char)
		case '$': // two of them may enclose a formula, but no price
			if after >= '0' && after <= '9' {
				b.WriteByte(char)
				break
			}
			b.WriteString(entities[char])
		case '@', '#', ':':
			b.WriteByte(char)
		default:
			b.WriteString(entities[char])
		}
		if char == '@' || joins && (char == '#' || char == '~' || char == ':') || char == ':' && strings.ContainsRune("/+-()", after) {
			b.WriteString(render.Blank)
		}
	})
}

// unmentioned breaks mentions in what a template says, also those in the form of Slack.
var unmentioned = strings.NewReplacer("@", "@"+render.Blank, "<!", "<"+render.Blank+"!")
