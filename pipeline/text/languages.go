package text

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kljensen/snowball/english"

	"github.com/vokter/vokter/pipeline"
)

// Languages knows the stemmers and stop words of languages. It is safe for concurrent
// use, also while languages come and go. Languages are named by BCP 47 tags, of which
// the primary subtag counts: "en-GB" is "en".
type Languages struct {
	mu         sync.RWMutex
	stemmers   map[string]pipeline.Stemmer
	stopwords  map[string][]string
	ready      map[string]*Normalizer // made since the last registration
	generation uint64
}

// NewLanguages returns a registry with English in it: the Snowball project's stemmer and
// stop words.
func NewLanguages() *Languages {
	return &Languages{
		stemmers:  map[string]pipeline.Stemmer{"en": englishStemmer{}},
		stopwords: map[string][]string{"en": ParseStopwords(englishStopwords)},
		ready:     map[string]*Normalizer{},
	}
}

// Register makes s the stemmer of its language.
func (l *Languages) Register(s pipeline.Stemmer) {
	l.change(func() { l.stemmers[key(s.Language())] = s })
}

// Unregister takes the stemmer of lang away, if there is one. Its stop words stay.
func (l *Languages) Unregister(lang string) {
	l.change(func() { delete(l.stemmers, key(lang)) })
}

// RegisterStopwords makes words the stop words of lang; no words take them away.
func (l *Languages) RegisterStopwords(lang string, words []string) {
	l.change(func() {
		if len(words) == 0 {
			delete(l.stopwords, key(lang))
			return
		}
		l.stopwords[key(lang)] = append([]string(nil), words...)
	})
}

func (l *Languages) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	l.ready = map[string]*Normalizer{}
	l.generation++
}

// Generation is a number that differs after each registration, for those who keep what
// they made with a Normalizer.
func (l *Languages) Generation() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.generation
}

// WithStemmer returns the languages that have a stemmer, in alphabetical order.
func (l *Languages) WithStemmer() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.stemmers))
}

// WithStopwords returns the languages that have stop words, in alphabetical order.
func (l *Languages) WithStopwords() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.stopwords))
}

// Normalizer returns how words are compared in lang. For "" and for languages that are
// not registered it neither stems nor knows stop words. A Normalizer stays as it is when
// languages are registered later.
func (l *Languages) Normalizer(lang string) *Normalizer {
	k := key(lang)
	l.mu.RLock()
	n := l.ready[k]
	l.mu.RUnlock()
	if n != nil {
		return n
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.ready[k]; n != nil {
		return n
	}
	if len(l.ready) >= maxReady { // tags that users make up must not add up
		l.ready = map[string]*Normalizer{}
	}
	n = newNormalizer(k, l.stemmers[k], l.stopwords[k])
	l.ready[k] = n
	return n
}

// maxReady bounds how many Normalizers, each with its cache, are kept.
const maxReady = 64

// key is the name of lang in the registry. Unlike primary it takes any string, so that
// a language of one's own can be registered.
func key(lang string) string {
	if p := primary(lang); p != "" {
		return p
	}
	return strings.ToLower(strings.TrimSpace(lang))
}

// ParseStopwords reads a list of stop words in the Snowball project's format: words
// separated by white space, comments from "|" to the end of the line.
func ParseStopwords(list string) []string {
	var words []string
	for line := range strings.Lines(list) {
		line, _, _ = strings.Cut(line, "|")
		words = append(words, strings.Fields(line)...)
	}
	return words
}

//go:embed stopwords/en.txt
var englishStopwords string

type englishStemmer struct{}

var _ pipeline.Stemmer = englishStemmer{}

func (englishStemmer) Language() string { return "en" }

// Stem stems stop words too, as Snowball does; the library would leave them.
func (englishStemmer) Stem(word string) string { return english.Stem(word, true) }
