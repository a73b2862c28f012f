package text

import (
	"strings"
	"unicode/utf8"
)

// Most words of most texts are plain: letters and digits with a space before them, and behind them a space,
// perhaps after a mark such as a comma. To find that space is several times as fast as to run the segmenter,
// which therefore gets only the text between plain words.

// appendPlainWords appends the plain words at the beginning of s[at:], each with the offset of s. It returns where
// they end. At is 0 or behind a space.
func appendPlainWords(ts []Token, s string, at, offset int) ([]Token, int) {
	for at < len(s) {
		if s[at] == ' ' {
			at++
			continue
		}
		end := plainWordEnd(s, at)
		if end == at {
			break
		}
		behind := end
		if behind < len(s) && isClauseEnd(s[behind]) {
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

// nextPlainWord returns where the next plain word may begin behind s[at]; len(s) if there is none.
func nextPlainWord(s string, at int) int {
	for {
		i := strings.IndexByte(s[at:], ' ')
		if i < 0 {
			return len(s)
		}
		if at += i + 1; plainWordEnd(s, at) > at {
			return at
		}
	}
}

// plainWordEnd returns the end of the run of letters and digits that begins at s[at]. Its letters are ASCII, the
// Latin letters of European languages, and Cyrillic. The caller checks the character behind the run.
func plainWordEnd(s string, at int) int {
	for at < len(s) {
		c := s[at]
		if c < utf8.RuneSelf {
			if !isASCIIWordByte[c] {
				return at
			}
			at++
			continue
		}
		if r, n := utf8.DecodeRuneInString(s[at:]); isPlainLetter(r) {
			at += n
			continue
		}
		return at
	}
	return at
}

// isPlainLetter reports whether r, which is not ASCII, is a letter of Latin or Cyrillic.
func isPlainLetter(r rune) bool {
	return r >= '\u00C0' && r <= '\u024F' && r != '×' && r != '÷' || r >= '\u0400' && r <= '\u0481' || r >= '\u048A' && r <= '\u052F'
}

// isASCIIWordByte says which bytes are letters or digits.
var isASCIIWordByte = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
	}
	return t
}()

// isClauseEnd reports whether c, before a space, stands behind a word and is no part of it.
func isClauseEnd(c byte) bool {
	switch c {
	case '.', ',', ';', ':', '!', '?', ')':
		return true
	}
	return false
}
