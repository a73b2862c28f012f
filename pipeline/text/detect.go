package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/abadojack/whatlanggo"
	"golang.org/x/text/language"
)

// DefaultLanguage is the fallback where none is configured.
const DefaultLanguage = "en"

// LanguageSource says what decided the language of a text.
type LanguageSource string

// The sources of a language.
const (
	FromSubscription LanguageSource = "subscription"
	FromDocument     LanguageSource = "document"
	FromPage         LanguageSource = "page"
	FromText         LanguageSource = "text" // Detect
	FromFallback     LanguageSource = "fallback"
)

// Reason says in words for people what decided the language.
func (s LanguageSource) Reason() string {
	switch s {
	case FromSubscription:
		return "set by the subscription"
	case FromDocument:
		return "set for the document"
	case FromPage:
		return "declared by the page"
	case FromText:
		return "detected"
	default:
		return "assumed, since the page declares none and none is detected"
	}
}

// CheckLanguage returns what is wrong with tag, the language that a user wrote. The empty one is
// valid.
func CheckLanguage(tag string) error {
	if tag == "" || primarySubtag(tag) != "" {
		return nil
	}
	return fmt.Errorf("%q is not a language tag; write one such as en or pt-BR", tag)
}

// LanguageChoice holds what may decide the language of a text, as BCP 47 tags. Each may be
// empty.
type LanguageChoice struct {
	// Subscription and Document are what the user wrote.
	Subscription, Document string
	// Page is what the page declares: its lang attribute or its Content-Language.
	Page string
	// Text is what Detect returned.
	Text string
	// Fallback is used where nothing else is known; empty: DefaultLanguage.
	Fallback string
}

// Language returns the primary subtag of the first tag that is given, in the order of the
// fields, and which one that was. A tag that is not valid counts as not given.
func (c LanguageChoice) Language() (string, LanguageSource) {
	for _, choice := range []struct {
		tag    string
		source LanguageSource
	}{
		{c.Subscription, FromSubscription}, {c.Document, FromDocument}, {c.Page, FromPage}, {c.Text, FromText}, {c.Fallback, FromFallback},
	} {
		if code := primarySubtag(choice.tag); code != "" {
			return code, choice.source
		}
	}
	return DefaultLanguage, FromFallback
}

const (
	// maxSamplePrefix is how many bytes of a text Detect looks at.
	maxSamplePrefix = 64 << 10
	// maxSampleRunes is how much of them the detector reads. It errs more beyond some 2,000.
	maxSampleRunes = 1000
	// minLetters is how many letters a text must have for its words to be judged: of English
	// texts of 20 letters of which the detector is sure it takes 5 % for another language, of
	// 40 letters 1 %.
	minLetters = 40
	// minScriptLetters is how many letters a script that only one language uses must have.
	minScriptLetters = 4
)

// Detect returns the language that content, a pipeline.Text's Content, is written in, as a
// BCP 47 primary subtag; "" where that is not clear. It reads the longest lines of the first
// 64 KiB, up to 1,000 characters. A script that only one language uses decides from 4 letters
// on: Greek, Thai, Hangul, Han, kana, Tamil and others. Short texts in Hebrew letters are Hebrew, and those in
// Cyrillic, Arabic or Devanagari are Russian, Arabic or Hindi unless their letters or words say otherwise. Other
// languages that share a script are told apart from 40 letters on: by their stop words, and where these are not clear
// by the frequencies of three letters. In Latin letters only a sure result counts, since the fallback is likely to be
// one of these languages.
func Detect(content string) string {
	s := longestLines(content)
	if code, decided := detectByScript(s); decided {
		return code
	}
	others := excludedByAlphabet(s)
	words := stopwordsOf(s)
	best := words.best()
	if words.evidence(best) == certain && !hasCode(others, best) {
		return best
	}
	info := whatlanggo.DetectWithOptions(s, whatlanggo.Options{Blacklist: others})
	code := codeOf(info.Lang)
	if info.Script == unicode.Latin && !info.IsReliable() && words.evidence(code) < likely {
		return ""
	}
	return code
}

// hasCode reports whether the language code is one of languages.
func hasCode(languages map[whatlanggo.Lang]bool, code string) bool {
	for lang := range languages {
		if codeOf(lang) == code {
			return true
		}
	}
	return false
}

// codeOf returns the BCP 47 primary subtag of lang, and "" for none.
func codeOf(lang whatlanggo.Lang) string {
	switch {
	case lang < 0:
		return ""
	case lang == whatlanggo.Pes: // Iranian Persian
		return "fa"
	}
	return primarySubtag(cmp.Or(lang.Iso6391(), lang.Iso6393()))
}

// singleLanguageScripts are the scripts that only one language of weight is written in. Japanese is
// the one that has kana among its Han.
var singleLanguageScripts = []struct {
	table *unicode.RangeTable
	code  string
}{
	{unicode.Han, "zh"}, {unicode.Hiragana, "ja"}, {unicode.Katakana, "ja"}, {unicode.Hangul, "ko"}, {unicode.Thai, "th"}, {unicode.Greek, "el"},
	{unicode.Georgian, "ka"}, {unicode.Armenian, "hy"}, {unicode.Bengali, "bn"}, {unicode.Gujarati, "gu"}, {unicode.Gurmukhi, "pa"},
	{unicode.Kannada, "kn"}, {unicode.Malayalam, "ml"}, {unicode.Oriya, "or"}, {unicode.Sinhala, "si"}, {unicode.Tamil, "ta"},
	{unicode.Hebrew, "he"}, // or Yiddish, which is told apart in texts of minLetters
	{unicode.Telugu, "te"}, {unicode.Lao, "lo"}, {unicode.Khmer, "km"}, {unicode.Myanmar, "my"},
}

// minKanaShare is the share of kana, in per cent, from which a text in Han and kana is Japanese.
// Chinese texts quote single Japanese words.
const minKanaShare = 5

// detectByScript returns the language that the script of s shows, in short texts also its letters and
// words. The language is "" where s is too short. decided is false where most of the letters belong
// to a script of several languages.
func detectByScript(s string) (code string, decided bool) {
	counts := map[string]int{}
	letters := 0
	for _, r := range s {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		if r < '\u0370' { // Latin
			continue
		}
		for _, script := range singleLanguageScripts {
			if unicode.Is(script.table, r) {
				counts[script.code]++
				break
			}
		}
	}
	if kana := counts["ja"]; kana*100 >= (kana+counts["zh"])*minKanaShare {
		counts["ja"] += counts["zh"]
		counts["zh"] = 0
	}
	for code, n := range counts {
		if n >= minScriptLetters && n*2 > letters && (code != "he" || letters < minLetters) {
			return code, true
		}
	}
	if letters < minLetters {
		return detectShort(s), true
	}
	return "", false
}

// foreignLetters are those of Cyrillic that an alphabet lacks. The detector alone takes short
// Russian texts for Bulgarian.
var foreignLetters = map[whatlanggo.Lang]string{
	whatlanggo.Rus: "іїєґўђћјљњџѓќѕ",
	whatlanggo.Ukr: "ыэёъўђћјљњџѓќѕ",
	whatlanggo.Bel: "иїєґъщђћјљњџѓќѕ",
	whatlanggo.Bul: "ыэёіїєґўђћјљњџѓќѕ",
	whatlanggo.Srp: "ыэёъіїєґўйщьюяѓќѕ",
	whatlanggo.Mkd: "ыэёъіїєґўйщьюяђћ",
}

// excludedByAlphabet returns the languages whose alphabet lacks more than 1 % of the letters of s.
func excludedByAlphabet(s string) map[whatlanggo.Lang]bool {
	counts := map[rune]int{}
	letters := 0
	for _, r := range s {
		if unicode.IsLetter(r) {
			letters++
		}
		if unicode.Is(unicode.Cyrillic, r) {
			counts[unicode.ToLower(r)]++
		}
	}
	others := map[whatlanggo.Lang]bool{}
	for lang, foreign := range foreignLetters {
		n := 0
		for _, r := range foreign {
			n += counts[r]
		}
		if n*100 > letters {
			others[lang] = true
		}
	}
	return others
}

// longestLines returns at most maxSampleRunes of the first maxSamplePrefix bytes of content, the
// longest lines first.
func longestLines(content string) string {
	if len(content) > maxSamplePrefix {
		end := maxSamplePrefix
		for end > 0 && !utf8.RuneStart(content[end]) {
			end--
		}
		content = content[:end]
	}
	type line struct {
		text  string
		runes int
	}
	var lines []line
	eachBlock(content, func(start, end int) {
		s := content[start:end]
		lines = append(lines, line{s, utf8.RuneCountInString(s)})
	}, func(byte) {})
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.runes, a.runes) })
	var b strings.Builder
	left := maxSampleRunes
	for _, l := range lines {
		if left <= 0 {
			break
		}
		for i := range l.text {
			if left == 0 {
				l.text = l.text[:i]
				break
			}
			left--
		}
		b.WriteString(l.text)
		b.WriteByte('\n')
		left--
	}
	return b.String()
}

// primarySubtag returns the primary subtag of the BCP 47 tag lang, in lower case. Both written
// forms of Norwegian are "no". It returns "" where lang is no such tag.
func primarySubtag(lang string) string {
	lang = strings.TrimSpace(lang)
	if lang == "" {
		return ""
	}
	tag, err := language.Parse(strings.ReplaceAll(lang, "_", "-"))
	if err != nil {
		return ""
	}
	base, confidence := tag.Base()
	if confidence < language.High { // "und"
		return ""
	}
	switch s := base.String(); s {
	case "nb", "nn":
		return "no"
	case "mul", "mis", "zxx": // several languages, one without a code, none
		return ""
	default:
		return s
	}
}
