package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A sign is a token without a letter or a number. These are signs:
//
//   - symbols of Unicode (categories So, Sc and Sm), emoji with all that belongs to them, and
//     percent signs;
//   - operators and arrows in ASCII, "<=", "!=" and "->", as long as they are;
//   - a minus, and a tilde, directly before a number. Behind a letter or a digit it is a dash: "A-5", "5-7",
//     "2026-11-21".
//
// What sets texts apart is no sign: quotes, commas, full stops, bullets, dashes between words, bars, the
// lines of boxes, and rows of four and more equal operators, which draw a line.

// IsSign reports whether token, one that Tokens returned, is a sign. The "." of ".NET" and the "#" of "#tag"
// belong to the words behind them and are none.
func IsSign(token string) bool {
	if c := token[0]; c < utf8.RuneSelf {
		return !isASCIIWordByte[c] && c != '.' && (c != '#' || len(token) > 1)
	}
	r, _ := utf8.DecodeRuneInString(token)
	return !isWord(r) && !unicode.IsMark(r)
}

// isSignByte says which ASCII characters a sign may begin with.
var isSignByte = func() (t [utf8.RuneSelf]bool) {
	for _, c := range "$%" + operatorBytes {
		t[c] = true
	}
	return t
}()

// operatorBytes are the characters of an operator in ASCII.
const operatorBytes = "<=>!+-~"

// appendASCIISign appends the sign at the beginning of s[at:], a byte of isSignByte, if it is one. It returns
// the end of what it read.
func appendASCIISign(ts []Token, s string, at, offset int) ([]Token, int) {
	end := at + 1
	if c := s[at]; c != '$' && c != '%' {
		for end < len(s) && strings.IndexByte(operatorBytes, s[end]) >= 0 {
			end++
		}
		run := s[at:end]
		switch compares := strings.ContainsAny(run, "<=>"); {
		case drawsLine(run), !compares && strings.Contains(run, "--"):
			return ts, end
		case c == '!' && !strings.HasPrefix(run, "!="):
			return ts, at + 1
		case compares:
			if run[len(run)-1] == '-' && beginsWithAmount(s[end:]) {
				end-- // ">-5"
			}
		case c == '+':
			end = at + len(run) - len(strings.TrimLeft(run, "+"))
		default:
			if end = at + 1; !isMinus(s, at, end) {
				return ts, end
			}
		}
	}
	return append(ts, Token{offset + at, offset + end}), end
}

// drawsLine reports whether run has four equal characters in a row.
func drawsLine(run string) bool {
	same := 0
	for i := range len(run) {
		if same++; i > 0 && run[i] != run[i-1] {
			same = 1
		}
		if same == 4 {
			return true
		}
	}
	return false
}

// isSign reports whether the segment s[start:end], which has no letter or number, is a sign.
func isSign(s string, start, end int) bool {
	r, n := utf8.DecodeRuneInString(s[start:end])
	switch {
	case r == '\u2212', r == '\u2013', r == '\uFE63', r == '\uFF0D', r == '\u223C', r == '\uFF5E': // minus signs, en dash, tildes
		return isMinus(s, start, start+n)
	case r >= '\u2018' && r <= '\u201F', r >= '\u3000' && r <= '\u3002': // nearly all: quotes, and the marks of Chinese
		return false
	case isSeparatorSign(r):
		return false
	case unicode.In(r, unicode.So, unicode.Sc, unicode.Sm), r == '\u2030', r == '\u2031', r == '\u066A', r == '\uFF05', r == '\uFE6A':
		return true
	}
	return strings.Contains(s[start:end], "\uFE0F") || strings.Contains(s[start:end], "\u20E3") // an emoji or a key: "‼️", "#️⃣"
}

// isSeparatorSign reports whether r is a symbol that only sets texts apart or stands before them, or that stands
// for a character that is not known.
func isSeparatorSign(r rune) bool {
	switch r {
	case '|', '¦', '｜', '∙', '⋅', '◦', '▪', '▫', '▸', '▹', '►', '▻', '◂', '◃', '◄', '◅', '\u2800', '\uFFFC', '\uFFFD':
		return true
	}
	return r >= '\u2500' && r <= '\u257F' // lines of boxes
}

// isMinus reports whether the dash or tilde s[at:end] belongs to the number behind it.
func isMinus(s string, at, end int) bool {
	if !beginsWithAmount(s[end:]) {
		return false
	}
	r, n := utf8.DecodeLastRuneInString(s[:at])
	return n == 0 || unicode.IsSpace(r) || strings.ContainsRune(`"':,;/*|`, r) || unicode.In(r, unicode.Ps, unicode.Pi, unicode.Sc, unicode.Sm)
}

// beginsWithAmount reports whether s begins with a number, perhaps with a currency before it.
func beginsWithAmount(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	if unicode.Is(unicode.Sc, r) {
		s = s[n:]
		r, n = utf8.DecodeRuneInString(s)
	}
	if r == '.' || r == ',' {
		r, _ = utf8.DecodeRuneInString(s[n:])
	}
	return unicode.IsNumber(r)
}
