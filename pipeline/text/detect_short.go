package text

import (
	"strings"
	"unicode"
)

// sharedScripts are scripts of several languages, of which one is by far the most frequent. A short
// text is in that one unless its letters or words say otherwise.
var sharedScripts = []struct {
	table *unicode.RangeTable
	code  func(s string) string
}{
	{unicode.Cyrillic, detectShortCyrillic}, {unicode.Arabic, detectShortArabic}, {unicode.Devanagari, detectShortDevanagari},
}

// detectShort returns the language of s, a text of fewer than minLetters letters. It returns "" where no
// script of sharedScripts has most of them, or where they are those of a language that is none of ours.
func detectShort(s string) string {
	letters := 0
	counts := make([]int, len(sharedScripts))
	for _, r := range s {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		for i, script := range sharedScripts {
			if unicode.Is(script.table, r) {
				counts[i]++
			}
		}
	}
	for i, n := range counts {
		if n >= minScriptLetters && n*2 > letters {
			return sharedScripts[i].code(strings.ToLower(s))
		}
	}
	return ""
}

const russianLetters = "абвгдеёжзийклмнопрстуфхцчшщъыьэюя"

// detectShortCyrillic tells Russian from Ukrainian by their letters, and from Bulgarian by its words, and by ъ
// where Russian has none. Belarusian, Serbian, Macedonian, Kazakh and others are none of ours.
func detectShortCyrillic(s string) string {
	ukrainian := strings.ContainsAny(s, "іїєґ")
	for _, r := range s {
		if unicode.Is(unicode.Cyrillic, r) && unicode.IsLetter(r) && !strings.ContainsRune(russianLetters+"іїєґ", r) {
			return ""
		}
	}
	russian := strings.ContainsAny(s, "ыэё")
	switch {
	case ukrainian && russian: // Belarusian
		return ""
	case ukrainian:
		return "uk"
	case russian:
		return "ru"
	case hasHardSignAsVowel(s):
		return "bg"
	}
	bulgarian := 0
	for _, languages := range stopwordsOf(s).found {
		bulgarian += languageBit(languages, "bg") - languageBit(languages, "ru")
	}
	if bulgarian > 0 {
		return "bg"
	}
	return "ru"
}

// hasHardSignAsVowel reports whether an ъ in s stands before another letter than е, ё, ю and я, as in Bulgarian.
func hasHardSignAsVowel(s string) bool {
	var before rune
	for _, r := range s {
		if before == 'ъ' && unicode.IsLetter(r) && !strings.ContainsRune("еёюя", r) {
			return true
		}
		before = r
	}
	return false
}

// detectShortArabic tells Persian and Sorani from Arabic by their letters. Urdu and others are none of ours.
func detectShortArabic(s string) string {
	switch {
	case strings.ContainsAny(s, "ٹڈڑںےہھ"):
		return ""
	case strings.ContainsAny(s, "ەێۆڕڵڤ"):
		return "ckb"
	case strings.ContainsAny(s, "پچژگکی"):
		return "fa"
	}
	return "ar"
}

// detectShortDevanagari tells Marathi from Hindi by a letter. Marathi is none of ours.
func detectShortDevanagari(s string) string {
	if strings.ContainsRune(s, 'ळ') {
		return ""
	}
	return "hi"
}

// languageBit returns the bit of the language code in languages: 1 if it is one of them, and else 0.
func languageBit(languages uint64, code string) int {
	for i := range wordLanguages {
		if languageAt(i) == code {
			return int(languages >> i & 1)
		}
	}
	return 0
}
