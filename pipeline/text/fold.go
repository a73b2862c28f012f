package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold is what grouping compares: token in Unicode's form C, without case (ς is σ, ß is
// ss) and without marks. Marks are dropped in Latin, Greek, Arabic and Hebrew only;
// elsewhere they make another letter. Folding does not depend on a language, so Turkish
// I and İ are both i.
func Fold(token string) string {
	if isASCII(token) {
		return strings.ToLower(token)
	}
	return dropMarks(foldCase(plain(token)))
}

// plain is the form of s that every comparison starts from: Unicode's form C, with one
// sort of apostrophe and without invisible characters that users copy unawares.
func plain(s string) string {
	if isASCII(s) {
		return s
	}
	return norm.NFC.String(strings.Map(func(r rune) rune {
		switch r {
		case '\u2019', '\uFF07':
			return '\''
		case '\u00AD', '\u200B', '\u200E', '\u200F', '\u2060', '\uFEFF':
			return -1
		}
		return r
	}, s))
}

// foldCase is s without case. The Caser of Fold has no state, so that it can be shared.
func foldCase(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return norm.NFC.String(caseFolder.String(s))
}

var caseFolder = cases.Fold()

// tatweel only stretches an Arabic word.
const tatweel = '\u0640'

// strokes are letters with a mark that Unicode does not take apart, and the tatweel.
var strokes = map[rune]rune{
	'ł': 'l', 'Ł': 'L', 'ø': 'o', 'Ø': 'O', 'đ': 'd', 'Đ': 'D', 'ħ': 'h', 'Ħ': 'H', 'ŧ': 't', 'Ŧ': 'T',
	'ı': 'i', tatweel: -1,
}

// dropMarks is s, in form C, without the marks on Latin, Greek, Arabic and Hebrew letters.
func dropMarks(s string) string {
	if isASCII(s) {
		return s
	}
	on := false // marks at this place are dropped
	out := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			if on {
				return -1
			}
			return r
		}
		on = unicode.In(r, unicode.Latin, unicode.Greek, unicode.Arabic, unicode.Hebrew)
		if q, ok := strokes[r]; ok {
			return q
		}
		return r
	}, norm.NFD.String(s))
	return norm.NFC.String(out)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
