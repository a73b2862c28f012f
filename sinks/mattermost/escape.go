package mattermost

import (
	"strings"

	"github.com/vokter/vokter/internal/chat"
)

// special are the characters that mean something in Mattermost's Markdown within a line
// and are literal behind a backslash.
const special = "\\`*_"

// entities stand for those that a backslash does not make literal everywhere.
var entities = map[rune]string{'<': "&lt;", '&': "&amp;", '[': "&#91;", ']': "&#93;", '~': "&#126;"}

// escape makes s literal. What Mattermost looks for behind its Markdown, such as mentions,
// channels, hashtags, emoji and addresses, is broken by a character that nobody sees.
func escape(s string) string {
	return chat.Escape(s, func(b *strings.Builder, before, r, after rune) {
		joins := chat.Joins(before, after)
		switch {
		case strings.ContainsRune(special, r), r == '.' && joins:
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '$' && (after < '0' || after > '9'): // two of them may enclose a formula
			b.WriteString("&#36;")
		case entities[r] != "":
			b.WriteString(entities[r])
		default:
			b.WriteRune(r)
		}
		if r == '@' || joins && (r == '#' || r == '~' || r == ':') || r == ':' && strings.ContainsRune("/+-()", after) {
			b.WriteString(chat.Blank)
		}
	})
}

// unmentioned breaks mentions in what a template says, also those in the form of Slack.
var unmentioned = strings.NewReplacer("@", "@"+chat.Blank, "<!", "<"+chat.Blank+"!")
