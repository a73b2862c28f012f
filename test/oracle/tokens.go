package oracle

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a word of a block, or the border behind a block.
type token struct {
	text       string // exact; empty for a border
	block      int    // index into the page
	start, end int    // in bytes within the block's text
}

func (t token) isBorder() bool { return t.text == "" }

// tokenize splits text into runs of letters and digits, and into characters in Han, signs of one character and
// operators of two.
func tokenize(text string) []token {
	var ts []token
	start, sign := -1, 0 // sign is where the last sign ends
	for i, r := range text {
		if i < sign {
			continue
		}
		sign = i + signAt(text, i)
		alone := unicode.Is(unicode.Han, r) || sign > i
		if alone && start >= 0 {
			ts = append(ts, token{text: text[start:i], start: start, end: i})
			start = -1
		}
		if sign > i {
			ts = append(ts, token{text: text[i:sign], start: i, end: sign})
			continue
		}
		if alone {
			ts = append(ts, token{text: string(r), start: i, end: i + utf8.RuneLen(r)})
			continue
		}
		switch in := unicode.IsLetter(r) || unicode.IsDigit(r); {
		case in && start < 0:
			start = i
		case !in && start >= 0:
			ts = append(ts, token{text: text[start:i], start: start, end: i})
			start = -1
		}
	}
	if start >= 0 {
		ts = append(ts, token{text: text[start:], start: start, end: len(text)})
	}
	return ts
}

// signAt returns the length of the sign at text[i:], or 0: an operator of comparison, a minus before a digit and
// behind none, a percent sign, or a symbol other than those that only separate.
func signAt(text string, i int) int {
	for _, operator := range []string{"<=", ">=", "!=", "=="} {
		if strings.HasPrefix(text[i:], operator) {
			return 2
		}
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	next, _ := utf8.DecodeRuneInString(text[i+n:])
	last, _ := utf8.DecodeLastRuneInString(text[:i])
	switch r {
	case '-', '−':
		if !unicode.IsDigit(next) || i > 0 && !unicode.IsSpace(last) {
			return 0
		}
		return n
	case '%':
		return n
	case '|':
		return 0
	}
	if unicode.IsSymbol(r) && !unicode.Is(unicode.Sk, r) {
		return n
	}
	return 0
}

// isSign reports whether a word has neither a letter nor a digit.
func isSign(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// withoutMarks replaces the letters with marks that pages may use by those without.
var withoutMarks = strings.NewReplacer(
	"à", "a", "á", "a", "â", "a", "ä", "a", "å", "a", "ç", "c", "è", "e", "é", "e", "ê", "e", "ë", "e",
	"í", "i", "ï", "i", "ñ", "n", "ó", "o", "ô", "o", "ö", "o", "ú", "u", "ü", "u",
	"À", "A", "Á", "A", "Â", "A", "Ä", "A", "Å", "A", "Ç", "C", "È", "E", "É", "E", "Ê", "E", "Ë", "E",
	"Í", "I", "Ï", "I", "Ñ", "N", "Ó", "O", "Ô", "O", "Ö", "O", "Ú", "U", "Ü", "U",
)

// fold drops case and marks.
func fold(s string) string { return strings.ToLower(withoutMarks.Replace(plain(s))) }

// plain returns a word as differences compare it: with one apostrophe, one minus, and signs without what chooses
// their look.
func plain(s string) string { return sameLook.Replace(s) }

var sameLook = strings.NewReplacer("\u2019", "'", "\u2212", "-", "\u2013", "-", "\ufe0e", "", "\ufe0f", "")

// keyword is a keyword as its subscription compares words.
type keyword struct {
	spelling      string
	terms         []string
	skipStopwords bool // stop words of the text are skipped
	skipSigns     bool // signs of the text are skipped, because the keyword has none
}

// reading is how a subscription reads texts of one language.
type reading struct {
	Subscription
	lang *Language
}

// parseKeyword returns the terms of a keyword: without stop words, unless it has no others.
func (r reading) parseKeyword(spelling string) keyword {
	k := keyword{spelling: spelling, skipSigns: true}
	for _, t := range tokenize(spelling) {
		k.skipSigns = k.skipSigns && !isSign(t.text)
		if !r.isStopword(t.text) {
			k.terms = append(k.terms, r.normalize(t.text))
		}
	}
	k.skipStopwords = len(k.terms) > 0
	if !k.skipStopwords {
		for _, t := range tokenize(spelling) {
			k.terms = append(k.terms, r.normalize(t.text))
		}
	}
	return k
}

// skips reports whether k is compared with a text without word.
func (r reading) skips(k keyword, word string) bool {
	return k.skipStopwords && r.isStopword(word) || k.skipSigns && isSign(word)
}

// isStopword reports whether a word is one that the subscription ignores.
func (r reading) isStopword(word string) bool {
	return r.FilterStopwords && r.lang != nil && r.lang.Stop[strings.ToLower(word)]
}

// normalize returns a word as the subscription compares it.
func (r reading) normalize(word string) string {
	if !r.MatchCase || r.Stem {
		word = strings.ToLower(word)
	}
	if r.Stem && r.lang != nil {
		word = r.lang.Stem(word)
	}
	if r.IgnoreDiacritics {
		word = withoutMarks.Replace(word)
	}
	return word
}

// occurrence is a place where a keyword stands: tokens first to last of a list.
type occurrence struct{ first, last int }

// occurrences returns where the phrase k stands in ts, overlapping ones each. It does
// not cross a border.
func (r reading) occurrences(k keyword, ts []token) []occurrence {
	var found []occurrence
	var at []int
	var norm []string
	flush := func() {
		for i := 0; i+len(k.terms) <= len(at); i++ {
			equal := true
			for j, t := range k.terms {
				equal = equal && norm[i+j] == t
			}
			if equal {
				found = append(found, occurrence{at[i], at[i+len(k.terms)-1]})
			}
		}
		at, norm = at[:0], norm[:0]
	}
	for i, t := range ts {
		switch {
		case t.isBorder():
			flush()
		case r.skips(k, t.text):
		default:
			at, norm = append(at, i), append(norm, r.normalize(t.text))
		}
	}
	flush()
	return found
}

// termCounts returns how often each term of k stands in ts.
func (r reading) termCounts(k keyword, ts []token) map[string]int {
	n := make(map[string]int, len(k.terms))
	for _, t := range k.terms {
		n[t] = 0
	}
	for _, t := range ts {
		if t.isBorder() || r.skips(k, t.text) {
			continue
		}
		if w := r.normalize(t.text); hasKey(n, w) {
			n[w]++
		}
	}
	return n
}

func hasKey[V any](m map[string]V, k string) bool {
	_, ok := m[k]
	return ok
}

// isNear reports whether changes beside a keyword are reported.
func (r reading) isNear() bool { return r.NearBlock || r.NearRow }

// contains reports whether text holds the keyword's tokens.
func (r reading) contains(k keyword, text string) bool {
	var ts []token
	for _, line := range strings.Split(text, "\n") {
		ts = append(append(ts, tokenize(line)...), token{})
	}
	if !r.Terms {
		return len(r.occurrences(k, ts)) > 0
	}
	for _, n := range r.termCounts(k, ts) {
		if n == 0 {
			return false
		}
	}
	return true
}
