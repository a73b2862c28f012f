package index

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

func TestLanguageOf(t *testing.T) {
	const german = "Jeden Morgen gingen die Kinder durch den alten Wald zur Schule, und am Abend kamen sie zurück."
	numbers := strings.Repeat("17 ", 100)
	for name, c := range map[string]struct {
		old, new string
		choice   text.LanguageChoice
		last     StoredVersion
		want     string
		from     text.LanguageSource
	}{
		"a fallback is detected again":         {numbers, numbers + german, text.LanguageChoice{}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "de", text.FromText},
		"so is what a page no longer declares": {numbers, numbers + german, text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromPage}, "de", text.FromText},
		"a detected language stands":           {numbers, numbers + german, text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromText}, "sv", text.FromText},
		"until most is new":                    {"17", german, text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromText}, "de", text.FromText},
		"or is too short to tell":              {"17", "18", text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromText}, "sv", text.FromText},
		"the page of a short part":             {"17", "18", text.LanguageChoice{Text: "fr"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "fr", text.FromText},
		"the text before its page":             {"17", german, text.LanguageChoice{Text: "fr"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "de", text.FromText},
		"what the page declares":               {"17", german, text.LanguageChoice{Page: "fr-CA"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "fr", text.FromPage},
		"what the user sets":                   {"17", german, text.LanguageChoice{Document: "it", Page: "fr"}, StoredVersion{Language: "fr", LanguageFrom: text.FromPage}, "it", text.FromDocument},
		"a fallback of one's own":              {"17", "18", text.LanguageChoice{Fallback: "pt"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "pt", text.FromFallback},
	} {
		if got, from := languageOf(flow.Snapshot{Previous: 1, Old: c.old, New: c.new}, c.choice, c.last); got != c.want || from != c.from {
			t.Errorf("%s: got %s (%s), want %s (%s)", name, got, from, c.want, c.from)
		}
	}
}
