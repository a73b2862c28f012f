package render

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Steers reports whether r could do more on a screen than appear: control characters,
// characters that change the direction of text, and invisible ones.
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

// Clean returns text from a page for one line of a screen: white space becomes one blank, and
// characters that Steers reports are dropped.
func Clean(s string) string {
	if isClean(s) {
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

// isClean reports whether Clean returns s unchanged.
func isClean(s string) bool {
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

// Set is a set of ASCII characters.
type Set [256]bool

// Chars returns the set of the ASCII characters in s.
func Chars(s string) *Set {
	var set Set
	for i := range len(s) {
		set[s[i]] = true
	}
	return &set
}

// Count returns how many characters of text are in the set.
func (s *Set) Count(text string) int {
	n := 0
	for i := range len(text) {
		if s[text[i]] {
			n++
		}
	}
	return n
}

// EscapeChars returns s with each special character replaced by what write writes. write also
// gets the rune before and the rune after. At the end of s that is a letter, because more text
// may follow.
func EscapeChars(s string, special *Set, write func(b *strings.Builder, before rune, char byte, after rune)) string {
	var b strings.Builder
	done := 0 // s[:done] is written
	for i := range len(s) {
		if !special[s[i]] {
			continue
		}
		if done == 0 {
			b.Grow(len(s) + len(s)/4)
		}
		before, after := rune(0), 'a'
		if i > 0 {
			before, _ = utf8.DecodeLastRuneInString(s[:i])
		}
		if i+1 < len(s) {
			after, _ = utf8.DecodeRuneInString(s[i+1:])
		}
		b.WriteString(s[done:i])
		write(&b, before, s[i], after)
		done = i + 1
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// Joins reports whether a character between before and after may join them to an address, a
// mention or the like: a word follows, and the character is not between digits as in 10:30.
func Joins(before, after rune) bool {
	return Word(after) && (!unicode.IsDigit(before) || !unicode.IsDigit(after))
}

// Word reports whether r belongs to a word.
func Word(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// Encoded returns the size of s, valid UTF-8, as a JSON string in bytes.
func Encoded(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < ' ':
			n += len(`\u0000`) - 1
		}
	}
	// The separators of lines are written as \u2028 and \u2029.
	return n + 3*(strings.Count(s, "\u2028")+strings.Count(s, "\u2029"))
}

// Runes returns the number of runes in s.
func Runes(s string) int { return utf8.RuneCountInString(s) }

// Bytes returns the number of bytes in s.
func Bytes(s string) int { return len(s) }

// UTF16 returns the number of UTF-16 code units of s.
func UTF16(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// Short returns s if it has at most limit runes. Otherwise it cuts s, at a blank if there is
// one near, and appends " ...".
func Short(s string, limit int) string {
	if _, end := excerptRange(s, 0, limit); end < len(s) {
		return strings.TrimRight(s[:end], " ") + " ..."
	}
	return s
}

// Cut returns s if its length is at most limit. Otherwise it returns the longest beginning of
// s, not cut within a rune, whose length together with a final "…" is at most limit.
func Cut(s string, limit int, length func(string) int) string {
	if length(s) <= limit {
		return s
	}
	ends := []int{0}
	for i := range s {
		ends = append(ends, i)
	}
	n := sort.Search(len(ends), func(i int) bool { return length(s[:ends[i]]+"…") > limit })
	if n == 0 {
		return ""
	}
	return s[:ends[n-1]] + "…"
}

// Columns returns the width of s on a terminal.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// Wrap breaks the lines of s at blanks, so that none is wider than columns. A continued line is
// indented like the line that it continues, and by hang more columns. A word that is wider than
// columns is not broken. If columns is 0, Wrap breaks nothing.
func Wrap(s string, columns, hang int) string {
	if columns <= 0 {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if Columns(line) <= columns {
			continue
		}
		text := strings.TrimLeft(line, " ")
		indent := len(line) - len(text)
		var b strings.Builder
		b.WriteString(line[:indent])
		column, begun := indent, false
		for word := range strings.SplitSeq(text, " ") {
			n := Columns(word)
			switch {
			case !begun:
			case column+1+n > columns:
				b.WriteString("\n" + strings.Repeat(" ", indent+hang))
				column = indent + hang
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += n
			begun = true
		}
		lines[i] = b.String()
	}
	return strings.Join(lines, "\n")
}
