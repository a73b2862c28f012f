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

// builtinTable lists the languages that every registry begins with, in the order of their names.
// Languages whose characters are tokens have neither stems nor stop words; they stand here
// for their names.
var builtinTable = [...]struct {
	code, name string
	stem       func(string) string // nil: no stemmer
	stopwords  bool                // stopwords/CODE.txt exists
}{
	{"ar", "Arabic", adaptGenerated(arabic.Stem), true},
	{"hy", "Armenian", nil, true},
	{"eu", "Basque", nil, true},
	{"bg", "Bulgarian", nil, true},
	{"ca", "Catalan", nil, true},
	{"zh", "Chinese", nil, false},
	{"hr", "Croatian", nil, true},
	{"cs", "Czech", nil, true},
	{"da", "Danish", adaptGenerated(danish.Stem), true},
	{"nl", "Dutch", adaptGenerated(dutch.Stem), true},
	{"en", "English", adaptSnowball(english.Stem), true},
	{"fi", "Finnish", adaptGenerated(finnish.Stem), true},
	{"fr", "French", adaptSnowball(french.Stem), true},
	{"gl", "Galician", nil, true},
	{"de", "German", adaptGenerated(german.Stem), true},
	{"el", "Greek", nil, true},
	{"he", "Hebrew", nil, true},
	{"hi", "Hindi", nil, true},
	{"hu", "Hungarian", adaptSnowball(hungarian.Stem), true},
	{"id", "Indonesian", nil, true},
	{"ga", "Irish", adaptGenerated(irish.Stem), true},
	{"it", "Italian", adaptGenerated(italian.Stem), true},
	{"ja", "Japanese", nil, false},
	{"ko", "Korean", nil, false},
	{"no", "Norwegian", adaptSnowball(norwegian.Stem), true},
	{"fa", "Persian", nil, true},
	{"pl", "Polish", nil, true},
	{"pt", "Portuguese", adaptGenerated(portuguese.Stem), true},
	{"ro", "Romanian", adaptGenerated(romanian.Stem), true},
	{"ru", "Russian", stemRussian, true},
	{"sk", "Slovak", nil, true},
	{"ckb", "Sorani", nil, true},
	{"es", "Spanish", adaptSnowball(spanish.Stem), true},
	{"sv", "Swedish", adaptSnowball(swedish.Stem), true},
	{"ta", "Tamil", adaptGenerated(tamil.Stem), true},
	{"th", "Thai", nil, false},
	{"tr", "Turkish", adaptGenerated(turkish.Stem), true},
	{"uk", "Ukrainian", nil, true},
}

// adaptSnowball adapts a stemmer of kljensen/snowball. Left to itself it does not stem the stop
// words of a list of its own; Snowball stems them.
func adaptSnowball(stem func(word string, stopwords bool) string) func(string) string {
	return func(word string) string { return stem(word, true) }
}

// stemRussian takes ё for е, as most texts do. The stemmer expects that.
func stemRussian(word string) string {
	return russian.Stem(strings.ReplaceAll(word, "ё", "е"), true)
}

// adaptGenerated adapts a stemmer of blevesearch/snowballstem, which the Snowball compiler made.
func adaptGenerated(stem func(*snowballstem.Env) bool) func(string) string {
	return func(word string) string {
		env := snowballstem.NewEnv(word)
		stem(env)
		return env.Current()
	}
}

// snowballStemmer is a stemmer of the Snowball project.
type snowballStemmer struct {
	code string
	stem func(string) string
}

func (s snowballStemmer) Language() string        { return s.code }
func (s snowballStemmer) Stem(word string) string { return s.stem(word) }

//go:embed stopwords/*.txt
var stopwordLists embed.FS

// builtinLanguages reads builtin and its lists once for all registries.
var builtinLanguages = sync.OnceValue(func() map[string]Language {
	all := make(map[string]Language, len(builtinTable))
	for _, b := range builtinTable {
		l := Language{Code: b.code, Name: b.name}
		if b.stem != nil {
			l.Stemmer = snowballStemmer{b.code, b.stem}
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
