package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// TestKeysOfLongItems: the blocks of a long item have its key; items in it have their own, or none. Long items are
// known where another of their list stands beside them.
func TestKeysOfLongItems(t *testing.T) {
	const start, end = string(pipeline.ItemStart), string(pipeline.ItemEnd)
	long := strings.Repeat("word ", 45)
	item := start + "a title\n" + long + "\n" + start + "part one\n" + end + "and more\n" + end
	a, b := pipeline.KeyOf(1, 1), pipeline.KeyOf(1, 2)
	d := analyze(item+item+"the end\n", []pipeline.Key{a, 0, b, 0})
	want := []Unit{{0, 1, a, false}, {1, 2, a, false}, {2, 3, 0, true}, {3, 4, a, false},
		{4, 5, b, false}, {5, 6, b, false}, {6, 7, 0, true}, {7, 8, b, false}, {8, 9, 0, false}}
	if len(d.Units) != len(want) {
		t.Fatalf("got %v", d.Units)
	}
	for i, u := range d.Units {
		if u != want[i] {
			t.Errorf("unit %d is %v, want %v", i, u, want[i])
		}
	}
	if len(d.LongItems) != 2 || d.LongItems[0] != (Unit{0, 4, a, true}) || d.LongItems[1] != (Unit{4, 8, b, true}) {
		t.Errorf("long items %v", d.LongItems)
	}
	if alone := analyze(item, nil); len(alone.LongItems) > 0 {
		t.Errorf("an item that stands alone: %v", alone.LongItems)
	}
}

// TestTitle: what names an item is no number and no code, if there is a name.
func TestTitle(t *testing.T) {
	for blocks, want := range map[string]string{
		"17|Lamp of brass|5": "Lamp of brass", "L1|Lamp of brass|5": "Lamp of brass", "L1|Lamp|5": "L1", "AB-17|5|yes": "AB-17",
		"iPhone15|very cheap": "iPhone15", "Lamp|made of brass": "Lamp", "5|6": "5", "id: 7|name: Lamp": "Lamp", "v1.2|many bugs": "v1.2",
	} {
		d := Analyze(strings.ReplaceAll(blocks, "|", "\n") + "\n")
		if got := d.Title(Unit{LastBlock: len(d.Blocks)}); got != want {
			t.Errorf("%s: got %q, want %q", blocks, got, want)
		}
	}
}

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

func TestWholeWords(t *testing.T) {
	for in, want := range map[string]string{ // the text in brackets
		"그는 한[국]어를 배운다":          "한국어를",
		"그는 [한]국어, 그리고":          "한국어",
		"[3]개월 동안":               "3개월",
		"de l'[eau] pure":        "l'eau",
		"de [l]’eau pure":        "l’eau",
		"rock '[n]' roll":        "n",
		"the [stock].":           "stock",
		"ภา[ษ]า":                 "ษ",
		"東[京]都":                  "京",
		"Price &[m]; and more":   "&m;",
		"Price &[m; and] more":   "&m; and",
		"Price & [m]; and more":  "m",
		"AT&[T]":                 "T",
		"personnel.[Pour] l'aut": "Pour",
		"[]":                     "",
	} {
		from, last := strings.Index(in, "["), strings.LastIndex(in, "]")
		s := in[:from] + in[from+1:last] + in[last+1:]
		if a, b := WholeWords(s, from, last-1); s[a:b] != want {
			t.Errorf("%s: got %q, want %q", in, s[a:b], want)
		}
	}
}
