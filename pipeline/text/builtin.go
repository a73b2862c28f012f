package text

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kljensen/snowball/english"
)

type builtinLanguage struct {
	code, name string
	stems      bool // there is a stemmer
	stopwords  bool // stopwords/CODE.txt exists
}

// builtinTable lists the languages that every registry begins with, in the order of their names.
// Languages whose characters are tokens have neither stems nor stop words; they stand here
// for their names.
var builtinTable = [...]builtinLanguage{
	{"ar", "Arabic", true, true},
	{"hy", "Armenian", false, true},
	{"eu", "Basque", false, true},
	{"bg", "Bulgarian", false, true},
	{"ca", "Catalan", false, true},
	{"zh", "Chinese", false, false},
	{"hr", "Croatian", false, true},
	{"cs", "Czech", false, true},
	{"da", "Danish", true, true},
	{"nl", "Dutch", true, true},
	{"en", "English", true, true},
	{"fi", "Finnish", true, true},
	{"fr", "French", true, true},
	{"gl", "Galician", false, true},
	{"de", "German", true, true},
	{"el", "Greek", false, true},
	{"he", "Hebrew", false, true},
	{"hi", "Hindi", false, true},
	{"hu", "Hungarian", true, true},
	{"id", "Indonesian", false, true},
	{"ga", "Irish", true, true},
	{"it", "Italian", true, true},
	{"ja", "Japanese", false, false},
	{"ko", "Korean", false, false},
	{"no", "Norwegian", true, true},
	{"fa", "Persian", false, true},
	{"pl", "Polish", false, true},
	{"pt", "Portuguese", true, true},
	{"ro", "Romanian", true, true},
	{"ru", "Russian", true, true},
	{"sk", "Slovak", false, true},
	{"ckb", "Sorani", false, true},
	{"es", "Spanish", true, true},
	{"sv", "Swedish", true, true},
	{"ta", "Tamil", true, true},
	{"th", "Thai", false, false},
	{"tr", "Turkish", true, true},
	{"uk", "Ukrainian", false, true},
}

// HasStems reports whether there is a stemmer of lang: here for English, and in package stemmers for others.
func HasStems(lang string) bool {
	k := languageKey(lang)
	return slices.ContainsFunc(builtinTable[:], func(b builtinLanguage) bool { return b.code == k && b.stems })
}

type englishStemmer struct{}

func (englishStemmer) Language() string { return "en" }

// Stem stems the stop words of the package too, as Snowball does.
func (englishStemmer) Stem(word string) string { return english.Stem(word, true) }

//go:embed stopwords/*.txt
var stopwordLists embed.FS

// builtinLanguages reads builtin and its lists once for all registries.
var builtinLanguages = sync.OnceValue(func() map[string]Language {
	all := make(map[string]Language, len(builtinTable))
	for _, b := range builtinTable {
		l := Language{Code: b.code, Name: b.name}
		if b.stopwords {
			list, err := stopwordLists.ReadFile("stopwords/" + b.code + ".txt")
			if err != nil {
				panic(fmt.Sprintf("text: the stop words of %s are not embedded: %v", b.name, err))
			}
			l.Stopwords = ParseStopwords(string(list))
		}
		all[b.code] = l
	}
	en := all["en"]
	en.Stemmer = englishStemmer{}
	all["en"] = en
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
