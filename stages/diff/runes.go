package diff

import (
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// go-diff compares runes and hands them back in strings, so symbols travel as runes
// that survive this: no control characters, no surrogates, not U+FFFD.
const (
	firstRune     = 0xA0
	surrogates    = 0xD800
	surrogatesEnd = 0xE000
	maxSymbols    = utf8.MaxRune + 1 - firstRune - (surrogatesEnd - surrogates) - 1
)

// symbolRune returns the rune for symbol n, 0 <= n < maxSymbols.
func symbolRune(n int) rune {
	r := rune(n) + firstRune
	if r >= surrogates {
		r += surrogatesEnd - surrogates
	}
	if r >= utf8.RuneError {
		r++
	}
	return r
}

// run is a stretch that both sides keep: a[a:a+n] equals b[b:b+n].
type run struct{ a, b, n int }

// diffRunes returns what a shortest diff of a and b keeps. Without a timeout go-diff is
// deterministic and does not write into its input; see limits for what that costs.
func diffRunes(a, b []rune) []run {
	dmp := diffmatchpatch.DiffMatchPatch{DiffTimeout: 0}
	var kept []run
	i, j := 0, 0
	for _, d := range dmp.DiffMainRunes(a, b, false) {
		n := utf8.RuneCountInString(d.Text)
		switch d.Type {
		case diffmatchpatch.DiffDelete:
			i += n
		case diffmatchpatch.DiffInsert:
			j += n
		case diffmatchpatch.DiffEqual:
			kept = append(kept, run{i, j, n})
			i, j = i+n, j+n
		}
	}
	return kept
}
