package render

import (
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline/text"
)

// leeway is how many runes a cut may move to be at a blank.
const leeway = 20

// window returns the bytes [start, end) of s to show: about limit runes, so that what begins
// at byte at stays visible with a third of the limit before it. It cuts at blanks where
// there are any near. at has to be the start of a rune.
func window(s string, at, limit int) (start, end int) {
	total := utf8.RuneCountInString(s)
	if total <= limit {
		return 0, len(s)
	}
	before := utf8.RuneCountInString(s[:at])
	first := max(min(before-limit/3, total-limit), 0)
	start = skip(s, first)
	end = start + skip(s[start:], limit)
	if near := s[start:min(start+skip(s[start:], leeway), at)]; start > 0 && s[start-1] != ' ' {
		start += strings.IndexByte(near, ' ') + 1
	}
	if end < len(s) && s[end] != ' ' {
		if i := strings.LastIndexByte(s[start:end], ' '); i >= 0 && utf8.RuneCountInString(s[start+i:end]) <= leeway {
			end = start + i
		}
	}
	return start, end
}

// skip returns how many bytes the first n runes of s have.
func skip(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

var english = text.NewLanguages().Normalizer("en")

// find returns where keyword stands in s, whose tokens are words: the first place at or
// behind byte from, else the first of all, word by word, compared as strictly as any place
// allows; for a keyword whose words stand apart that of its first one. Equal results:
// nowhere.
func find(s string, words []text.Token, keyword string, from int) (start, end int) {
	wanted := text.Tokens(keyword)
	forms := []text.Form{0, text.FormCase, text.FormCase | text.FormMarks, text.FormStem | text.FormMarks}
	for n := len(wanted); n > 0; n = min(n-1, 1) {
		for _, f := range forms {
			terms := make([]string, n)
			for i, w := range wanted[:n] {
				terms[i] = english.Term(keyword[w.Start:w.End], f)
			}
			for i := 0; i+n <= len(words); i++ {
				if !equal(s, words[i:i+n], terms, f) {
					continue
				}
				if a, b := words[i].Start, words[i+n-1].End; b > from {
					return a, b
				} else if end == 0 {
					start, end = a, b
				}
			}
			if end > 0 {
				return start, end
			}
		}
	}
	return 0, 0
}

// equal reports whether words of s are the terms, in the form f.
func equal(s string, words []text.Token, terms []string, f text.Form) bool {
	for i, t := range words {
		if english.Term(s[t.Start:t.End], f) != terms[i] {
			return false
		}
	}
	return true
}

// Short returns s, cut at a blank where there is one near, with " ..." behind it where it
// has more than limit runes.
func Short(s string, limit int) string {
	if _, end := window(s, 0, limit); end < len(s) {
		return strings.TrimRight(s[:end], " ") + " ..."
	}
	return s
}

// Cut returns s, or as much of its beginning as length counts to at most limit together
// with the "…" that then ends it. It never cuts within a rune.
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
