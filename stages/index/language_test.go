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
		n        uint64
		old, new string
		choice   text.LanguageChoice
		last     StoredVersion
		want     string
		from     text.LanguageSource
	}{
		"a fallback is detected again":          {2, numbers, numbers + german, text.LanguageChoice{}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "de", text.FromText},
		"so is what a page no longer declares":  {2, numbers, numbers + german, text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromPage}, "de", text.FromText},
		"a detected language stands":            {2, numbers, numbers + german, text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromText}, "sv", text.FromText},
		"until most is new":                     {2, "17", german, text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromText}, "de", text.FromText},
		"or is too short to tell":               {2, "17", "18", text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromText}, "sv", text.FromText},
		"the page of a short part":              {2, "17", "18", text.LanguageChoice{Text: "fr"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "fr", text.FromText},
		"the text before its page":              {2, "17", german, text.LanguageChoice{Text: "fr"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "de", text.FromText},
		"what the page declares":                {2, "17", german, text.LanguageChoice{Page: "fr-CA"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "fr", text.FromPage},
		"what the user sets":                    {2, "17", german, text.LanguageChoice{Document: "it", Page: "fr"}, StoredVersion{Language: "fr", LanguageFrom: text.FromPage}, "it", text.FromDocument},
		"a fallback of one's own":               {2, "17", "18", text.LanguageChoice{Fallback: "pt"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "pt", text.FromFallback},
		"a fallback stands where little is new": {2, numbers + german, numbers + german + " 18", text.LanguageChoice{}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "en", text.FromFallback},
		"but not for ever":                      {32, numbers + german, numbers + german + " 18", text.LanguageChoice{}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "de", text.FromText},
	} {
		if got, from := languageOf(flow.Snapshot{N: c.n, Previous: 1, Old: c.old, New: c.new}, c.choice, c.last); got != c.want || from != c.from {
			t.Errorf("%s: got %s (%s), want %s (%s)", name, got, from, c.want, c.from)
		}
	}
}
