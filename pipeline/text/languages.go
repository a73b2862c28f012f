package text

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/vokter/vokter/pipeline"
)

// Language is what a registry knows about one language. It must not be changed.
type Language struct {
	// Code is the primary subtag of BCP 47: the code of ISO 639-1, or of ISO 639-3 where
	// there is no shorter one.
	Code string
	// Name is the English name; it is empty for a language that a program registered.
	Name string
	// Stemmer is nil where FormStem compares words without regard to case only.
	Stemmer pipeline.Stemmer
	// Stopwords are the words of no significance; empty: there is no list.
	Stopwords []string
}

// Languages is a registry of languages: their stemmers and stop words. A program may add,
// replace and remove both at any time. Languages are named by BCP 47 tags, of which only the
// primary subtag counts: "en-GB" is "en". Languages is safe for concurrent use.
type Languages struct {
	mu          sync.RWMutex
	languages   map[string]Language    // by code
	normalizers map[string]*Normalizer // made since the last change
	generation  uint64
	snowball    string // the codes of the stemmers of package stemmers that NewLanguages was given
}

// Snowball is a stemmer of package stemmers. Its stems change with Version only.
type Snowball interface {
	pipeline.Stemmer
	IsSnowball()
}

// NewLanguages returns a registry of the languages that docs/text.md lists. It has a stemmer of English, and those that
// are given; package stemmers has more.
func NewLanguages(given ...pipeline.Stemmer) *Languages {
	l := &Languages{languages: maps.Clone(builtinLanguages()), normalizers: map[string]*Normalizer{}}
	var codes []string
	for _, s := range given {
		l.Register(s)
		if _, ok := s.(Snowball); ok {
			l.generation--
			codes = append(codes, s.Language())
		}
	}
	slices.Sort(codes)
	l.snowball = strings.Join(slices.Compact(codes), " ")
	return l
}

// Analysis names the rules by which a new registry, whose Generation is 0, reads words: it is the same after a restart,
// and another one with other stemmers or another Version.
func (l *Languages) Analysis() string { return Version + " " + l.snowball }

// Register makes s the stemmer of its language and replaces the one that was there.
func (l *Languages) Register(s pipeline.Stemmer) {
	l.update(s.Language(), func(known *Language) { known.Stemmer = s })
}

// Unregister removes the stemmer of lang, also a built-in one. The stop words stay.
func (l *Languages) Unregister(lang string) {
	l.update(lang, func(known *Language) { known.Stemmer = nil })
}

// RegisterStopwords replaces the stop words of lang by words. Without words it removes them.
func (l *Languages) RegisterStopwords(lang string, words []string) {
	words = slices.Clone(words)
	l.update(lang, func(known *Language) { known.Stopwords = words })
}

// update applies f to lang. Normalizers that were returned before are not touched.
func (l *Languages) update(lang string, f func(*Language)) {
	k := languageKey(lang)
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.languages[k]
	known.Code = k
	f(&known)
	l.languages[k] = known
	l.normalizers = map[string]*Normalizer{}
	l.generation++
}

// Generation returns a number that changes with each registration, and is 0 before the first one of what is not in this
// module. A caller that keeps what it made with a Normalizer compares it.
func (l *Languages) Generation() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.generation
}

// All returns the languages of the registry in the order of their codes.
func (l *Languages) All() []Language {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.SortedFunc(maps.Values(l.languages), func(a, b Language) int { return cmp.Compare(a.Code, b.Code) })
}

// WithStemmer returns the codes of the languages that have a stemmer, in alphabetical order.
func (l *Languages) WithStemmer() []string {
	return l.codesWhere(func(known Language) bool { return known.Stemmer != nil })
}

// WithStopwords returns the codes of the languages that have stop words, in alphabetical
// order.
func (l *Languages) WithStopwords() []string {
	return l.codesWhere(func(known Language) bool { return len(known.Stopwords) > 0 })
}

// codesWhere returns the codes of the languages for which has is true, in alphabetical order.
func (l *Languages) codesWhere(has func(Language) bool) []string {
	var codes []string
	for _, known := range l.All() {
		if has(known) {
			codes = append(codes, known.Code)
		}
	}
	return codes
}

// Normalizer returns how words are compared in lang. For "" and for a language that is not
// registered it neither stems nor has stop words. A Normalizer does not change when the
// registry does.
func (l *Languages) Normalizer(lang string) *Normalizer {
	k := languageKey(lang)
	l.mu.RLock()
	n := l.normalizers[k]
	l.mu.RUnlock()
	if n != nil {
		return n
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.normalizers[k]; n != nil {
		return n
	}
	if len(l.normalizers) >= maxNormalizers { // users can invent tags without end
		l.normalizers = map[string]*Normalizer{}
	}
	known := l.languages[k]
	n = newNormalizer(k, known.Stemmer, known.Stopwords)
	l.normalizers[k] = n
	return n
}

// maxNormalizers bounds how many Normalizers, each with its cache, are kept.
const maxNormalizers = 64

// languageKey is the name of lang in the registry. Unlike primarySubtag it takes any string, so that a
// program can register a language that BCP 47 does not know.
func languageKey(lang string) string {
	if p := primarySubtag(lang); p != "" {
		return p
	}
	return strings.ToLower(strings.TrimSpace(lang))
}
