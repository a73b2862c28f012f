package text

import (
	"math/bits"
	"strings"
	"sync"
	"unicode"
)

// evidence says how sure the stop words of a text are of a language.
type evidence int

const (
	unlikely evidence = iota
	likely            // enough if the detector names the same language, even without being sure
	certain
)

const (
	// minStopwords and minStopwordShare are how many of the different words of a text must be
	// stop words of a language, and how many per cent of them. A related language that has no
	// list mostly reaches a smaller share.
	minStopwords     = 4
	minStopwordShare = 25
	// manyStopwords are enough for the share minShareOfMany: the share of the different words that are
	// stop words falls with the length of a text.
	manyStopwords  = 15
	minShareOfMany = 15
)

// textStopwords are the stop words of a text.
type textStopwords struct {
	wordCount int      // different words in the text, whether stop words or not
	found     []uint64 // of each different stop word, the languages that have it: bit i is that of languageAt(i)
}

// stopwordsOf finds the stop words of s, in all languages at once.
func stopwordsOf(s string) textStopwords {
	lists := stopwordLanguages()
	s = romanianRules.letters.Replace(strings.ToLower(s)) // the lists have ş, many pages ș
	seen := map[string]bool{}
	var found []uint64
	for w := range strings.FieldsFuncSeq(s, isNotInWord) {
		if seen[w] {
			continue
		}
		seen[w] = true
		if languages := lists[w]; languages != 0 {
			found = append(found, languages)
		}
	}
	return textStopwords{wordCount: len(seen), found: found}
}

// wordLanguages is how many languages are told apart by words: the built-in ones and Afrikaans.
const wordLanguages = len(builtinTable) + 1

// languageAt returns the code of the language with the bit i.
func languageAt(i int) string {
	if i == len(builtinTable) {
		return "af"
	}
	return builtinTable[i].code
}

// best returns the language that has most of the stop words.
func (f textStopwords) best() string {
	var counts [wordLanguages]int
	best := 0
	for _, languages := range f.found {
		for ; languages != 0; languages &= languages - 1 {
			i := bits.TrailingZeros64(languages)
			counts[i]++
			if counts[i] > counts[best] {
				best = i
			}
		}
	}
	return languageAt(best)
}

// evidence compares the language code with all others by the words that only one of the two
// has among its stop words. That tells languages apart whose letters are distributed alike,
// such as Danish and Norwegian.
func (f textStopwords) evidence(code string) evidence {
	at := -1
	for i := range wordLanguages {
		if languageAt(i) == code {
			at = i
		}
	}
	if at < 0 {
		return unlikely
	}
	var own int
	var more, less [wordLanguages]int // stop words of code that another language has not, and the reverse
	for _, languages := range f.found {
		has := languages>>at&1 == 1
		if has {
			own++
		}
		for i := range wordLanguages {
			switch other := languages>>i&1 == 1; {
			case has && !other:
				more[i]++
			case other && !has:
				less[i]++
			}
		}
	}
	share := minStopwordShare
	if own >= manyStopwords {
		share = minShareOfMany
	}
	if own < minStopwords || own*100 < f.wordCount*share {
		return unlikely
	}
	sure := certain
	for i := range wordLanguages {
		switch {
		case i == at || more[i] >= 3 && more[i] >= 4*less[i]:
		case more[i] >= 1 && more[i] >= 2*less[i]:
			sure = likely
		default:
			return unlikely
		}
	}
	return sure
}

func isNotInWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }

// extraDanishWords are Danish words that only the Norwegian list has, and others as frequent. Without
// them most Danish texts have more words of the Norwegian list, which is twice as long. They are no
// stop words.
const extraDanishWords = "begge bare blevet både da din fordi før hver hvem hvilke hvilken hvordan hvorfor ingen ja kan kom kun lige " +
	"mellem mere nogen samme siden så uden ved"

// extraDutchWords are frequent Dutch words that the Dutch list lacks. Without them short Dutch texts are not told
// from Afrikaans. They are no stop words.
const extraDutchWords = "elk elke wij jij jouw jullie waarbij hierbij daarbij tijd tijden tijdens vrij vijf zeven nieuwe kunt zult onze"

// afrikaansWords are frequent words of Afrikaans, which has no list of stop words. Without them most of
// its texts are taken for Dutch.
const afrikaansWords = "aan al almal alle as baie by daar dat deur die dit een ek elke en enige gee geen haar het hierdie hom hulle hy is kan " +
	"maak maar met moet my na nie nog of om ons ook op reg sal se so sonder sy te tot uit van vir vry was wat wees wie word"

// stopwordLanguages has the languages of each stop word: bit i is that of languageAt(i).
var stopwordLanguages = sync.OnceValue(func() map[string]uint64 {
	more := map[string]string{"da": extraDanishWords, "nl": extraDutchWords}
	languages := map[string]uint64{}
	for i, b := range builtinTable {
		for _, w := range builtinLanguages()[b.code].Stopwords {
			languages[w] |= 1 << i
		}
		for w := range strings.FieldsSeq(more[b.code]) {
			languages[w] |= 1 << i
		}
	}
	for w := range strings.FieldsSeq(afrikaansWords) {
		languages[w] |= 1 << len(builtinTable)
	}
	return languages
})

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
