package text

import (
	"strings"
	"sync"
	"unicode"

	"github.com/vokter/vokter/pipeline"
)

// Form says as what a word is compared. It is a set of Form bits; the zero Form is the
// word as it is written (in Unicode's form C, ’ as ').
type Form uint8

// The parts of a Form.
const (
	// FormCase ignores case.
	FormCase Form = 1 << iota
	// FormMarks ignores marks on Latin, Greek, Arabic and Hebrew letters.
	FormMarks
	// FormStem compares stems; it implies FormCase.
	FormStem
)

// FormOf returns how s compares words.
func FormOf(s pipeline.Subscription) Form {
	var f Form
	if s.IgnoreCase || s.Stem {
		f |= FormCase
	}
	if s.IgnoreDiacritics {
		f |= FormMarks
	}
	if s.Stem {
		f |= FormStem
	}
	return f
}

// Normalizer turns the words of one language into what is compared. It keeps what it
// stemmed last, within bounds, and is safe for concurrent use.
type Normalizer struct {
	lang    string
	stemmer pipeline.Stemmer // nil: none
	stop    map[string]bool

	mu          sync.RWMutex
	young, aged map[cacheKey]string
}

type cacheKey struct {
	form  Form
	token string
}

const (
	cacheHalf = 16384 // entries of each of the two halves of the cache
	cacheWord = 64    // bytes; longer words are not kept
)

func newNormalizer(lang string, stemmer pipeline.Stemmer, stopwords []string) *Normalizer {
	n := &Normalizer{lang: lang, stemmer: stemmer, young: map[cacheKey]string{}}
	if len(stopwords) > 0 {
		n.stop = make(map[string]bool, len(stopwords))
		for _, w := range stopwords {
			n.stop[n.Term(w, FormCase)] = true
		}
	}
	return n
}

// Language returns the primary subtag, or "".
func (n *Normalizer) Language() string { return n.lang }

// HasStemmer reports whether FormStem makes a difference.
func (n *Normalizer) HasStemmer() bool { return n.stemmer != nil }

// HasStopwords reports whether there is any word that IsStop reports.
func (n *Normalizer) HasStopwords() bool { return len(n.stop) > 0 }

// IsStop reports whether token is a word of no significance, whatever its case.
func (n *Normalizer) IsStop(token string) bool {
	return n.stop != nil && n.stop[n.Term(token, FormCase)]
}

// Term returns what token is compared as in form f. Equal terms of equal forms match.
func (n *Normalizer) Term(token string, f Form) string {
	if f&FormStem != 0 {
		f |= FormCase
		if n.stemmer == nil {
			f &^= FormStem
		}
	}
	if f&FormStem == 0 && isASCII(token) {
		if f&FormCase == 0 {
			return token
		}
		if n.lang != "tr" && n.lang != "az" {
			return strings.ToLower(token)
		}
	}
	if len(token) > cacheWord {
		return n.term(token, f)
	}
	k := cacheKey{f, token}
	n.mu.RLock()
	t, ok := n.young[k]
	if !ok {
		t, ok = n.aged[k]
	}
	n.mu.RUnlock()
	if ok {
		return t
	}
	k.token = strings.Clone(token) // token is part of a whole page
	t = n.term(k.token, f)
	n.mu.Lock()
	if len(n.young) >= cacheHalf {
		n.young, n.aged = make(map[cacheKey]string, cacheHalf), n.young
	}
	n.young[k] = t
	n.mu.Unlock()
	return t
}

// term computes what Term returns.
func (n *Normalizer) term(token string, f Form) string {
	t := plain(token)
	if f&FormCase != 0 && (n.lang == "tr" || n.lang == "az") {
		t = strings.ToLowerSpecial(unicode.TurkishCase, t)
	}
	if f&FormStem != 0 && strings.IndexFunc(t, notWordRune) < 0 {
		t = n.stemmer.Stem(strings.ToLower(t))
	}
	if f&FormCase != 0 {
		t = foldCase(t)
	}
	if f&FormMarks != 0 {
		t = dropMarks(t)
	}
	return t
}

// notWordRune reports whether r does not stand in words of a natural language: "C++",
// "12.50" and "a@b.com" have no stem.
func notWordRune(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '\'' }
