package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Set is a set of characters of ASCII.
type Set [256]bool

// Chars returns the set of the characters of ASCII in s.
func Chars(s string) *Set {
	var set Set
	for i := range len(s) {
		set[s[i]] = true
	}
	return &set
}

// Count is how many characters of text are in the set.
func (s *Set) Count(text string) int {
	n := 0
	for i := range len(text) {
		if s[text[i]] {
			n++
		}
	}
	return n
}

// EscapeChars returns s with each of the special characters as write writes it. It gets the
// neighbours as well: the rune before, and the one after, or a letter where s ends, since
// more may follow there.
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

// Joins reports whether what stands between before and after may join them to an address,
// a mention or the like: a word follows, and it is not between digits as in 10:30.
func Joins(before, after rune) bool {
	return Word(after) && (!unicode.IsDigit(before) || !unicode.IsDigit(after))
}

// Word reports whether r belongs to a word.
func Word(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// Target makes a URL fit for the target of a link.
var Target = strings.NewReplacer(
	"<", "%3C", ">", "%3E", "(", "%28", ")", "%29", "[", "%5B", "]", "%5D", "|", "%7C", `\`, "%5C", "`", "%60",
)

// Values is how the values of a template are written: the address of the page as one to
// follow, all else as escape does.
func Values(m Message, escape func(string) string) func(string) string {
	return func(s string) string {
		if s == m.URL {
			return Target.Replace(s)
		}
		return escape(s)
	}
}
