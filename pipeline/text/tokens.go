package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/clipperhouse/uax29/v2/words"

	"github.com/vokter/vokter/pipeline"
)

// Token is one word or sign of a text: the bytes [Start, End) of it.
type Token struct{ Start, End int }

// wordJoiners keep "AT&T" whole, and the sign of ".NET" and "#tag" with the word.
var wordJoiners = &words.Joiners[string]{Middle: []rune("&"), Leading: []rune("#.")}

// Tokens returns the words and signs of s in order, none of them empty, all on rune boundaries. It takes
// any string. A token is a word of UAX #29 that holds a letter or a number, or a sign, as IsSign describes;
// punctuation is none. Beyond that:
//
//   - What only joins words separates them: "e-mail", "www.example.com", "user@example.com"
//     and "personnel.Pour" are several tokens each, and as keywords phrases. So do colons, and the
//     commas of Arabic and Chinese. In numbers points, commas and apostrophes join: "12.50" and
//     "1,299.00" are one token.
//   - A sign that makes another word is kept. "C++" and "C#" are one token each: "++" belongs to
//     any word before it, "#" to a single letter. "AT&T" and "R&D" are one token each: "&" joins
//     parts of at most three letters. The "." of ".NET" and the "#" of "#tag" are tokens of
//     their own, so that "tag" is found too; they are at the start of s, behind white space, and
//     behind an opening bracket or quote, before a letter or, for "#", a digit.
//   - An apostrophe within a word belongs to it: "don't". The elided words of French, Italian
//     and Catalan are tokens of their own, in every text: "l'eau" is "l" and "eau", "dell'arte"
//     is "dell" and "arte". What stands before the apostrophe must be one of a short list, and at
//     least two letters must follow.
//   - "_" joins words, but is no part of one at either end.
//   - Scripts without spaces between words (Han, kana, Thai, Lao, Khmer, Burmese) and Hangul give
//     one token for each character with its marks, so that a keyword is found wherever its
//     characters stand next to each other.
func Tokens(s string) []Token {
	// A word and what follows it take some six bytes.
	return appendTokens(make([]Token, 0, len(s)/6+1), s, 0, len(s))
}

// appendTokens appends the tokens of s[from:to], which is read as a text of its own.
func appendTokens(ts []Token, s string, from, to int) []Token {
	if utf8.ValidString(s[from:to]) {
		return appendValid(ts, s[from:to], from)
	}
	for from < to {
		// The segmenter gives up at an invalid byte, so it gets the valid stretches.
		valid := from
		for valid < to {
			r, n := utf8.DecodeRuneInString(s[valid:to])
			if r == utf8.RuneError && n == 1 {
				break
			}
			valid += n
		}
		ts = appendValid(ts, s[from:valid], from)
		from = valid + 1
	}
	return ts
}

// appendValid appends the tokens of s, which is valid UTF-8 and begins at offset.
func appendValid(ts []Token, s string, offset int) []Token {
	var it *words.Iterator[string]
	for at := 0; at < len(s); {
		if ts, at = appendPlainWords(ts, s, at, offset); at == len(s) {
			break
		}
		if it == nil {
			it = newSegmenter()
		}
		next := nextPlainWord(s, at)
		ts = appendSegments(ts, it, s[at:next], offset+at)
		at = next
	}
	return ts
}

func newSegmenter() *words.Iterator[string] {
	it := words.FromString("")
	it.Joiners(wordJoiners)
	return it
}

// appendSegments is appendValid with the segmenter alone.
func appendSegments(ts []Token, it *words.Iterator[string], s string, offset int) []Token {
	it.SetText(s)
	taken := 0 // s[:taken] belongs to tokens or is passed over
	for it.Next() {
		start, end := it.Start(), it.End()
		start = max(start, taken)
		if start < end && (isAlphanumeric(s[start:end]) || isSingleToken(s[start:end])) && (end == len(s) || s[end] != '+' && s[end] != '#') {
			ts = append(ts, Token{offset + start, offset + end}) // nearly every word
			continue
		}
		if end-start == 1 && s[start] < utf8.RuneSelf && !isAlphanumeric(s[start:end]) {
			if isSignByte[s[start]] {
				ts, taken = appendASCIISign(ts, s, start, offset)
			}
			continue // nearly all between words
		}
		if start >= end {
			continue
		}
		if !hasWord(s[start:end]) {
			if isSign(s, start, end) {
				ts = append(ts, Token{offset + start, offset + end})
			}
			continue
		}
		start, end = trimSegment(s, start, end)
		end = endWithSign(s, start, end)
		taken = end
		ts = appendWord(ts, s[start:end], offset+start)
	}
	return ts
}

// isWord reports whether r makes a segment a word. The tatweel only stretches one.
func isWord(r rune) bool { return (unicode.IsLetter(r) || unicode.IsNumber(r)) && r != tatweel }

func hasWord(s string) bool { return strings.IndexFunc(s, isWord) >= 0 }

// isAlphanumeric reports whether s holds ASCII letters and digits only.
func isAlphanumeric(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// isSingleToken reports whether s is one token, without a closer look: a single character in Han, or
// letters of Latin, Cyrillic, Hebrew or Arabic and digits only. It is false for some words that
// are one token, too.
func isSingleToken(s string) bool {
	if r, n := utf8.DecodeRuneInString(s); n == len(s) && r >= '\u4E00' && r <= '\u9FFF' {
		return true
	}
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			if r|0x20 < 'a' || r|0x20 > 'z' {
				if r < '0' || r > '9' {
					return false
				}
			}
		case isPlainLetter(r):
		case r >= '\u05D0' && r <= '\u05EA', r >= '\u0620' && r <= '\u064A' && r != tatweel:
		default:
			return false
		}
	}
	return true
}

// trimSegment takes from both ends of the segment s[start:end] what is not part of the word. It
// leaves a sign that the word begins with.
func trimSegment(s string, start, end int) (int, int) {
	first := start + strings.IndexFunc(s[start:end], isWord)
	if first > start && (s[first-1] == '.' || s[first-1] == '#') {
		before := s[:first-1]
		if last, _ := utf8.DecodeLastRuneInString(before); allowsSignBehind(before) ||
			s[first-1] == '.' && beginsWithDigit(s[first:]) && (last == '-' || unicode.In(last, unicode.Sc, unicode.Sm)) {
			first-- // "-.5" and "$.99", too
		}
	}
	return first, start + len(strings.TrimRight(s[start:end], "_\u203F\u2040\u2054\uFE33\uFE34\uFE4D\uFE4E\uFE4F\uFF3F"))
}

// allowsSignBehind reports whether a word behind before may begin with a sign.
func allowsSignBehind(before string) bool {
	r, n := utf8.DecodeLastRuneInString(before)
	return n == 0 || unicode.IsSpace(r) || r == '"' || r == '\'' || unicode.In(r, unicode.Ps, unicode.Pi)
}

// endWithSign returns the end of the word s[start:end] with the "++" or "#" that belongs to it.
func endWithSign(s string, start, end int) int {
	last, n := utf8.DecodeLastRuneInString(s[start:end])
	if !unicode.IsLetter(last) {
		return end
	}
	rest := s[end:]
	after := func(k int) rune { r, _ := utf8.DecodeRuneInString(rest[k:]); return r }
	switch {
	case strings.HasPrefix(rest, "++") && after(2) != '+':
		return end + 2
	case strings.HasPrefix(rest, "#") && start+n == end && after(1) != '#' && !isWord(after(1)):
		return end + 1
	}
	return end
}

// elidedWords are the words that lose their last vowel before an apostrophe in French,
// Italian and Catalan.
var elidedWords = map[string]bool{
	"l": true, "d": true, "j": true, "m": true, "t": true, "s": true, "n": true, "c": true, "qu": true,
	"jusqu": true, "lorsqu": true, "puisqu": true, "quoiqu": true, "presqu": true,
	"un": true, "all": true, "dall": true, "dell": true, "nell": true, "sull": true, "coll": true,
	"gl": true, "quest": true, "quell": true, "bell": true, "sant": true, "nessun": true, "ciascun": true,
}

// appendWord appends the word w, which begins at offset, as one or more tokens.
func appendWord(ts []Token, w string, offset int) []Token {
	if w[0] == '#' || w[0] == '.' && !beginsWithDigit(w[1:]) {
		ts = append(ts, Token{offset, offset + 1})
		w, offset = w[1:], offset+1
	}
	start := 0
	for i, r := range w {
		if i > 0 && isJoint(r) && isSeparator(w, start, i, r) {
			ts = appendPart(ts, w[start:i], offset+start)
			start = i + utf8.RuneLen(r)
		}
	}
	return appendPart(ts, w[start:], offset+start)
}

// isJoint reports whether UAX #29 or joiners may join words by r, though not always rightly.
func isJoint(r rune) bool {
	switch r {
	case '.', '\u2024', '\uFE52', '\uFF0E', '\u0589', '\u060C', '\u060D', '\uFE10', '\uFE50', '\uFF0C', ':', '\uFE13', '\uFE55', '\uFF1A', ';', '\u037E', '\uFE14', '\uFE54', '\uFF1B', '\u00B7', '\u0387', '&':
		return true
	}
	return false
}

// isSeparator reports whether the joint r at w[i] separates two words; the part before it begins
// at start.
func isSeparator(w string, start, i int, r rune) bool {
	before, after := w[start:i], w[i+utf8.RuneLen(r):]
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	switch r {
	case '.', '\u2024', '\uFE52', '\uFF0E':
		return !unicode.IsNumber(last) || !unicode.IsNumber(next)
	case '\u00B7': // Catalan: "col·lecció"
		return unicode.ToLower(last) != 'l' || unicode.ToLower(next) != 'l'
	case '&':
	default:
		return true
	}
	if end := strings.IndexFunc(after, isJoint); end >= 0 {
		after = after[:end]
	}
	// A part before it that was joined already is short, too: "A&B&C".
	return !isShortPart(before[strings.LastIndexByte(before, '&')+1:]) || !isShortPart(after)
}

// isShortPart reports whether s is a part of a name such as "AT&T".
func isShortPart(s string) bool {
	letters := 0
	for _, r := range s {
		switch {
		case unicode.IsLetter(r):
			letters++
		case unicode.IsNumber(r):
			return false
		}
	}
	return letters > 0 && letters <= 3
}

func beginsWithDigit(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsNumber(r)
}

// appendPart appends w, which holds no joint that separates, as one or more tokens.
func appendPart(ts []Token, w string, offset int) []Token {
	if !hasWord(w) {
		return ts
	}
	if at, n := findApostrophe(w); n > 0 && elidedWords[strings.ToLower(w[:at])] && beginsWithTwoLetters(w[at+n:]) {
		ts = append(ts, Token{offset, offset + at})
		w, offset = w[at+n:], offset+at+n
	}
	if strings.IndexFunc(w, isSingleCharacterScript) < 0 {
		return append(ts, Token{offset, offset + len(w)})
	}
	run := 0 // w[run:] up to the present cluster is a word in another script
	flush := func(end int) {
		if run < end && hasWord(w[run:end]) {
			ts = append(ts, Token{offset + run, offset + end})
		}
	}
	it := graphemes.FromString(w)
	for it.Next() {
		r, _ := utf8.DecodeRuneInString(it.Value())
		if !isSingleCharacterScript(r) {
			continue
		}
		flush(it.Start())
		ts = append(ts, Token{offset + it.Start(), offset + it.End()})
		run = it.End()
	}
	flush(len(w))
	return ts
}

// findApostrophe returns where the first apostrophe of w is and its length in bytes, 0 if none.
func findApostrophe(w string) (at, n int) {
	i := strings.IndexAny(w, "'’")
	if i < 0 {
		return 0, 0
	}
	_, n = utf8.DecodeRuneInString(w[i:])
	return i, n
}

func beginsWithTwoLetters(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	q, _ := utf8.DecodeRuneInString(s[n:])
	return unicode.IsLetter(r) && (unicode.IsLetter(q) || unicode.IsMark(q))
}

// isSingleCharacterScript reports whether r is of a script in which each character is a token. The
// prolonged sound mark is in no script of its own.
func isSingleCharacterScript(r rune) bool {
	if r < 0xE00 {
		return false
	}
	return r == '\u30FC' || r == '\uFF70' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

const maxKeywordTokens = 16

// ValidKeyword returns why k cannot be a keyword, in words for the user, or nil: it has
// no token, or more than 16.
func ValidKeyword(k string) error {
	if utf8.RuneCountInString(k) > pipeline.MaxKeywordLength {
		return nil // Subscription.Validate says that
	}
	switch n := len(Tokens(k)); {
	case n == 0:
		return fmt.Errorf("%q has no word in it; a keyword needs a letter, a digit or a sign such as € or ✔", k)
	case n > maxKeywordTokens:
		return fmt.Errorf("%q has %d words; a keyword has at most %d", k, n, maxKeywordTokens)
	}
	return nil
}
