package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// checkSameTokens fails where the words that are found without the segmenter make a difference.
func checkSameTokens(t *testing.T, s string) {
	t.Helper()
	if got, want := appendValid(nil, s, 7), appendSegments(nil, newSegmenter(), s, 7); !slices.Equal(got, want) {
		t.Fatalf("%q: got the tokens %v, want %v", s, got, want)
	}
}

// TestPlainWords: every text has the tokens that the segmenter alone finds in it, wherever plain words stand.
func TestPlainWords(t *testing.T) {
	parts := []string{
		" ", "  ", "a", "Zeus", "42", "é", "ж", "ї", ".", ",", ";", ":", "!", "?", ")", "(", "\"", "'", "’", "#", "++", "+", "&", "_", "-", "/",
		"\u0301", "\u00AD", "\u200D", "\u200B", "\u00A0", "\u3000", "\t", "\r", "\n", "שלום", "漢", "한", "ไ", "カ", "\u0640", "½", "…", "🔥", "🇩🇪", "l'", "qu’", "×", "·", "\u0483", "e.g", "1,2",
	}
	for _, a := range parts {
		for _, b := range parts {
			for _, c := range parts {
				checkSameTokens(t, a+b+c)
				checkSameTokens(t, "word "+a+b+" "+c+" word")
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		checkSameTokens(t, b.String())
	}
	for c := rune(1); c < 0x3000; c++ { // with every letter of plain words, and many other characters
		if utf8.ValidRune(c) {
			checkSameTokens(t, "a"+string(c)+"b "+string(c)+" c"+string(c)+". "+string(c)+"1, d")
		}
	}
}

func FuzzPlainWords(f *testing.F) {
	f.Add("Zeus has C++, l'eau and 12.50 \u0301x.")
	f.Fuzz(func(t *testing.T, s string) { checkSameTokens(t, strings.ToValidUTF8(s, "")) })
}
