package text

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
	"github.com/kljensen/snowball/english"
	"github.com/kljensen/snowball/french"
	"github.com/kljensen/snowball/hungarian"
	"github.com/kljensen/snowball/norwegian"
	"github.com/kljensen/snowball/russian"
	"github.com/kljensen/snowball/spanish"
	"github.com/kljensen/snowball/swedish"
)

// builtin lists the languages that every registry begins with, in the order of their names.
// Languages whose characters are tokens have neither stems nor stop words; they stand here
// for their names.
var builtin = [...]struct {
	code, name string
	stem       func(string) string // nil: no stemmer
	stopwords  bool                // stopwords/CODE.txt exists
}{
	{"ar", "Arabic", generated(arabic.Stem), true},
	{"hy", "Armenian", nil, true},
	{"eu", "Basque", nil, true},
	{"bg", "Bulgarian", nil, true},
	{"ca", "Catalan", nil, true},
	{"zh", "Chinese", nil, false},
	{"hr", "Croatian", nil, true},
	{"cs", "Czech", nil, true},
	{"da", "Danish", generated(danish.Stem), true},
	{"nl", "Dutch", generated(dutch.Stem), true},
	{"en", "English", written(english.Stem), true},
	{"fi", "Finnish", generated(finnish.Stem), true},
	{"fr", "French", written(french.Stem), true},
	{"gl", "Galician", nil, true},
	{"de", "German", generated(german.Stem), true},
	{"el", "Greek", nil, true},
	{"he", "Hebrew", nil, true},
	{"hi", "Hindi", nil, true},
	{"hu", "Hungarian", written(hungarian.Stem), true},
	{"id", "Indonesian", nil, true},
	{"ga", "Irish", generated(irish.Stem), true},
	{"it", "Italian", generated(italian.Stem), true},
	{"ja", "Japanese", nil, false},
	{"ko", "Korean", nil, false},
	{"no", "Norwegian", written(norwegian.Stem), true},
	{"fa", "Persian", nil, true},
	{"pl", "Polish", nil, true},
	{"pt", "Portuguese", generated(portuguese.Stem), true},
	{"ro", "Romanian", generated(romanian.Stem), true},
	{"ru", "Russian", stemRussian, true},
	{"sk", "Slovak", nil, true},
	{"ckb", "Sorani", nil, true},
	{"es", "Spanish", written(spanish.Stem), true},
	{"sv", "Swedish", written(swedish.Stem), true},
	{"ta", "Tamil", generated(tamil.Stem), true},
	{"th", "Thai", nil, false},
	{"tr", "Turkish", generated(turkish.Stem), true},
	{"uk", "Ukrainian", nil, true},
}

// written adapts a stemmer of kljensen/snowball. Left to itself it does not stem the stop
// words of a list of its own; Snowball stems them.
func written(stem func(word string, stopwords bool) string) func(string) string {
	return func(word string) string { return stem(word, true) }
}

// stemRussian takes ё for е, as most texts do. The stemmer expects that.
func stemRussian(word string) string {
	return russian.Stem(strings.ReplaceAll(word, "ё", "е"), true)
}

// generated adapts a stemmer of blevesearch/snowballstem, which the Snowball compiler made.
func generated(stem func(*snowballstem.Env) bool) func(string) string {
	return func(word string) string {
		env := snowballstem.NewEnv(word)
		stem(env)
		return env.Current()
	}
}

// snowball is a stemmer of the Snowball project.
type snowball struct {
	code string
	stem func(string) string
}

func (s snowball) Language() string        { return s.code }
func (s snowball) Stem(word string) string { return s.stem(word) }

//go:embed stopwords/*.txt
var stopwordLists embed.FS

// builtinLanguages reads builtin and its lists once for all registries.
var builtinLanguages = sync.OnceValue(func() map[string]Language {
	all := make(map[string]Language, len(builtin))
	for _, b := range builtin {
		l := Language{Code: b.code, Name: b.name}
		if b.stem != nil {
			l.Stemmer = snowball{b.code, b.stem}
		}
		if b.stopwords {
			list, err := stopwordLists.ReadFile("stopwords/" + b.code + ".txt")
			if err != nil {
				panic(fmt.Sprintf("text: the stop words of %s are not embedded: %v", b.name, err))
			}
			l.Stopwords = ParseStopwords(string(list))
		}
		all[b.code] = l
	}
	return all
})

// ParseStopwords reads a list of stop words in the format of the Snowball project: words
// separated by white space, and comments from "|" to the end of the line.
func ParseStopwords(list string) []string {
	var words []string
	for line := range strings.Lines(list) {
		line, _, _ = strings.Cut(line, "|")
		words = append(words, strings.Fields(line)...)
	}
	return words
}
