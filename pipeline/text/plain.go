package text

import (
	"strings"
	"unicode/utf8"
)

// Most words of most texts are plain: letters and digits with a space before them, and behind them a space,
// perhaps after a mark such as a comma. To find that space is several times as fast as to run the segmenter,
// which therefore gets only the text between plain words.

// appendPlain appends the plain words at the beginning of s[at:], each with the offset of s. It returns where
// they end. At is 0 or behind a space.
func appendPlain(ts []Token, s string, at, offset int) ([]Token, int) {
	for at < len(s) {
		if s[at] == ' ' {
			at++
			continue
		}
		end := plainEnd(s, at)
		if end == at {
			break
		}
		behind := end
		if behind < len(s) && endsClause(s[behind]) {
			behind++
		}
		if behind < len(s) && s[behind] != ' ' {
			break
		}
		ts = append(ts, Token{offset + at, offset + end})
		at = behind
	}
	return ts, at
}

// nextPlain returns where the next plain word may begin behind s[at]; len(s) if there is none.
func nextPlain(s string, at int) int {
	for {
		i := strings.IndexByte(s[at:], ' ')
		if i < 0 {
			return len(s)
		}
		if at += i + 1; plainEnd(s, at) > at {
			return at
		}
	}
}

// plainEnd returns the end of the run of letters and digits that begins at s[at]. Its letters are ASCII, the
// Latin letters of European languages, and Cyrillic. The caller checks the character behind the run.
func plainEnd(s string, at int) int {
	for at < len(s) {
		c := s[at]
		if c < utf8.RuneSelf {
			if !asciiWord[c] {
				return at
			}
			at++
			continue
		}
		if r, n := utf8.DecodeRuneInString(s[at:]); plainLetter(r) {
			at += n
			continue
		}
		return at
	}
	return at
}

// plainLetter reports whether r, which is not ASCII, is a letter of Latin or Cyrillic.
func plainLetter(r rune) bool {
	return r >= '\u00C0' && r <= '\u024F' && r != '×' && r != '÷' || r >= '\u0400' && r <= '\u0481' || r >= '\u048A' && r <= '\u052F'
}

// asciiWord says which bytes are letters or digits.
var asciiWord = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
	}
	return t
}()

// endsClause reports whether c, before a space, stands behind a word and is no part of it.
func endsClause(c byte) bool {
	switch c {
	case '.', ',', ';', ':', '!', '?', ')':
		return true
	}
	return false
}
