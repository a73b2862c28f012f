package text

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/abadojack/whatlanggo"
	"golang.org/x/text/language"
)

// sampleRunes is how much of a text the detector is shown: beyond it, it errs more.
const sampleRunes = 1000

// Detect returns the language of content (a pipeline.Text's Content) as a BCP 47 primary
// subtag: what its longest lines look like, if that is clear; else what the page
// declares; else last, which is what the document was in before; else "".
func Detect(content, declared, last string) string {
	declared = primary(declared)
	info := whatlanggo.Detect(sample(content))
	if info.IsReliable() {
		// Text in Han only always looks Chinese to the detector.
		if info.Lang == whatlanggo.Cmn && declared == "ja" {
			return declared
		}
		if code := info.Lang.Iso6391(); code != "" {
			return primary(code)
		}
		return primary(info.Lang.Iso6393())
	}
	if declared != "" {
		return declared
	}
	return primary(last)
}

// sample returns at most sampleRunes of content, the longest lines first.
func sample(content string) string {
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
	left := sampleRunes
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

// primary returns the primary subtag of the BCP 47 tag lang, in lower case, with the
// Norwegians as "no"; "" if lang is no such tag.
func primary(lang string) string {
	lang = strings.TrimSpace(lang)
	if lang == "" {
		return ""
	}
	tag, err := language.Parse(strings.ReplaceAll(lang, "_", "-"))
	if err != nil {
		return ""
	}
	base, confidence := tag.Base()
	if confidence == language.No {
		return ""
	}
	switch s := base.String(); s {
	case "nb", "nn":
		return "no"
	default:
		return s
	}
}
