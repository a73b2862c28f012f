package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Steers reports whether r could do more to a screen than appear there: control
// characters, those that turn the direction of the text, and invisible ones.
func Steers(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return true
	case r == '\u061C', r == '\u200E', r == '\u200F', r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u2069':
		return true // marks and controls of direction
	case r == '\u2028', r == '\u2029', r == '\uFEFF', r == '\u00AD', r >= 0xE0000 && r <= 0xE007F:
		return true // separators of lines, the byte order mark, the soft hyphen, tags
	}
	return false
}

// Clean makes text from a page fit for one line of a screen: white space becomes one
// blank, what Steers reports is dropped.
func Clean(s string) string {
	if tidy(s) {
		return s
	}
	var b strings.Builder
	blank := false
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case unicode.IsSpace(r), r == '\u2028', r == '\u2029':
			blank = b.Len() > 0
			continue
		case Steers(r):
			continue
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// tidy reports whether Clean has nothing to do with s.
func tidy(s string) bool {
	blank := true // also where s begins
	for _, r := range s {
		switch {
		case r > ' ' && r < 0x7F:
			blank = false
		case r == ' ' && !blank:
			blank = true
		case r == ' ', r == utf8.RuneError, unicode.IsSpace(r), Steers(r):
			return false
		default:
			blank = false
		}
	}
	return !blank || s == ""
}
