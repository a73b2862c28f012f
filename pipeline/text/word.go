package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWordExtension is how many bytes WholeWords adds on each side at most.
const maxWordExtension = 64

// WholeWords returns s[from:to], whose borders are those of tokens, extended to the words as people
// write them where these are several tokens: Korean words, which have a token for each syllable,
// and words with an elided one before them, such as "l'eau". An entity that was not expanded,
// such as "&m;", is extended to all of it. Words in scripts without spaces are not extended.
func WholeWords(s string, from, to int) (int, int) {
	first, last := max(from-maxWordExtension, 0), min(to+maxWordExtension, len(s))
	for from > first {
		before, n := utf8.DecodeLastRuneInString(s[:from])
		after, _ := utf8.DecodeRuneInString(s[from:])
		if m := apostropheBefore(s[:from]); m > 0 && unicode.IsLetter(after) {
			n = m
		} else if !isOneWord(before, after) {
			break
		}
		from -= n
	}
	for to < last {
		before, _ := utf8.DecodeLastRuneInString(s[:to])
		after, n := utf8.DecodeRuneInString(s[to:])
		if next, _ := utf8.DecodeRuneInString(s[to+n:]); (after == '\'' || after == '’') && unicode.IsLetter(before) && unicode.IsLetter(next) {
			n += utf8.RuneLen(next)
		} else if !isOneWord(before, after) {
			break
		}
		to += n
	}
	if from > 0 && s[from-1] == '&' {
		if end := strings.IndexByte(s[from:last], ';'); end > 0 && isAlphanumeric(s[from:from+end]) {
			from, to = from-1, max(to, from+end+1)
		}
	}
	return from, to
}

// apostropheBefore returns how many bytes a letter and an apostrophe at the end of s have, or 0.
func apostropheBefore(s string) int {
	r, n := utf8.DecodeLastRuneInString(s)
	letter, m := utf8.DecodeLastRuneInString(s[:len(s)-n])
	if r != '\'' && r != '’' || !unicode.IsLetter(letter) {
		return 0
	}
	return n + m
}

// isOneWord reports whether a and b, which stand next to each other, belong to one word.
func isOneWord(a, b rune) bool {
	inWord := func(r rune) bool {
		return unicode.Is(unicode.Hangul, r) || !isSingleCharacterScript(r) && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r))
	}
	return inWord(a) && inWord(b)
}
