package text

import (
	"cmp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"

	"github.com/vokter/vokter/pipeline"
)

// Form says how words are compared. It is a set of bits; in the zero Form words are equal
// where they are written alike, in Unicode's normal form C and with ’ as '.
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
	if !s.MatchCase || s.Stem {
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

// Normalizer returns what the words of one language are compared as. It caches the stems of
// the latest words, within bounds, and is safe for concurrent use.
type Normalizer struct {
	lang      string
	rules     languageRules
	stemmer   pipeline.Stemmer // nil: none
	stopTerms map[string]bool  // terms of form stopForm

	mu                      sync.RWMutex
	recentTerms, olderTerms map[cacheKey]string
}

type cacheKey struct {
	form  Form
	token string
}

const (
	maxHalfCache  = 16384 // entries in each of the two halves of the cache
	maxCachedWord = 64    // bytes; longer words are not kept
)

// languageRules are what comparing the words of a language needs beyond Unicode.
type languageRules struct {
	// lower puts letters in lower case; nil: as Unicode does in most languages.
	lower func(string) string
	// letters replaces letters by those that readers take for the same.
	letters *strings.Replacer
	// stopIgnoresMarks says that stop words are the same with and without marks.
	stopIgnoresMarks bool
	// capitalsLackMarks says that capitals are written without marks, so that marks do not count
	// where case does not.
	capitalsLackMarks bool
	// endingsBehindApostrophe says that endings of names stand behind one; they are no part of the stem.
	endingsBehindApostrophe bool
}

var (
	turkicRules = languageRules{
		lower:                   func(s string) string { return strings.ToLowerSpecial(unicode.TurkishCase, s) },
		endingsBehindApostrophe: true, // "İstanbul'da"
	}
	// The letters of Arabic keyboards are often typed for the Persian and Kurdish ones, and the
	// joint before an ending is often left out.
	persianRules = languageRules{letters: strings.NewReplacer("ي", "ی", "ى", "ی", "ك", "ک", "\u200C", ""), stopIgnoresMarks: true}
	// Where fonts lack ș and ț, Romanian has them with a cedilla, as the stemmer does.
	romanianRules = languageRules{letters: strings.NewReplacer("ș", "ş", "ț", "ţ", "Ș", "Ş", "Ț", "Ţ")}
)

var rulesByLanguage = map[string]languageRules{
	"ar":  {stopIgnoresMarks: true},
	"az":  turkicRules,
	"ckb": persianRules,
	"el":  {capitalsLackMarks: true},
	"fa":  persianRules,
	"he":  {stopIgnoresMarks: true},
	"ro":  romanianRules,
	"tr":  turkicRules,
}

func newNormalizer(lang string, stemmer pipeline.Stemmer, stopwords []string) *Normalizer {
	n := &Normalizer{lang: lang, rules: rulesByLanguage[lang], stemmer: stemmer, recentTerms: map[cacheKey]string{}}
	if len(stopwords) > 0 {
		n.stopTerms = make(map[string]bool, len(stopwords))
		for _, w := range stopwords {
			for _, t := range Tokens(w) { // "d'un" is two
				n.stopTerms[n.Term(w[t.Start:t.End], n.stopForm())] = true
			}
		}
	}
	return n
}

// stopForm returns the form in which stop words are compared.
func (n *Normalizer) stopForm() Form {
	if n.rules.stopIgnoresMarks {
		return FormCase | FormMarks
	}
	return FormCase
}

// Language returns the primary subtag, or "".
func (n *Normalizer) Language() string { return n.lang }

// HasStemmer reports whether FormStem differs from FormCase.
func (n *Normalizer) HasStemmer() bool { return n.stemmer != nil }

// HasStopwords reports whether there is a word for which IsStop returns true.
func (n *Normalizer) HasStopwords() bool { return len(n.stopTerms) > 0 }

// IsStop reports whether token is a word of no significance, in any case. In Arabic, Greek,
// Hebrew, Persian and Sorani marks do not count either.
func (n *Normalizer) IsStop(token string) bool {
	return n.stopTerms != nil && n.stopTerms[n.Term(token, n.stopForm())]
}

// Term returns what token is compared as in form f. Two tokens match where their terms in the
// same form are equal.
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
		if n.rules.lower == nil {
			return strings.ToLower(token)
		}
	}
	if len(token) > maxCachedWord {
		return n.computeTerm(token, f)
	}
	k := cacheKey{f, token}
	n.mu.RLock()
	t, ok := n.recentTerms[k]
	if !ok {
		t, ok = n.olderTerms[k]
	}
	n.mu.RUnlock()
	if ok {
		return t
	}
	k.token = strings.Clone(token) // token is part of a whole page
	t = n.computeTerm(k.token, f)
	n.mu.Lock()
	if len(n.recentTerms) >= maxHalfCache {
		n.recentTerms, n.olderTerms = make(map[cacheKey]string, maxHalfCache), n.recentTerms
	}
	n.recentTerms[k] = t
	n.mu.Unlock()
	return t
}

// computeTerm computes what Term returns.
func (n *Normalizer) computeTerm(token string, f Form) string {
	t := PlainForm(token)
	if n.rules.letters != nil {
		t = n.rules.letters.Replace(t)
	}
	if f&FormCase != 0 && n.rules.lower != nil {
		t = n.rules.lower(t)
	}
	if f&FormStem != 0 && strings.IndexFunc(t, isNotWordRune) < 0 {
		t = n.stem(strings.ToLower(t))
	}
	if f&FormCase != 0 {
		t = foldCase(t)
	}
	if f&FormMarks != 0 || f&FormCase != 0 && n.rules.capitalsLackMarks {
		t = dropMarks(t)
	}
	return t
}

// stem returns the stem of word, which is never empty.
func (n *Normalizer) stem(word string) string {
	if n.rules.endingsBehindApostrophe {
		if name, _, ok := strings.Cut(word, "'"); ok && name != "" {
			word = name
		}
	}
	return cmp.Or(n.stemmer.Stem(word), word)
}

// isNotWordRune reports whether r does not stand in words of a natural language: "C++",
// "12.50" and "a@b.com" have no stem.
func isNotWordRune(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '\'' }

// Fold returns what grouping compares: token in Unicode's normal form C, without case (ς is
// σ, ß is ss), without the width of letters (Ａ is a) and without marks. Marks are dropped in
// Latin, Greek, Arabic and Hebrew only; elsewhere they make another letter. Folding does not
// depend on a language, so Turkish I and İ are both i.
func Fold(token string) string {
	if isASCII(token) {
		return strings.ToLower(token)
	}
	return dropMarks(foldCase(PlainForm(token)))
}

// PlainForm returns the form of s that every comparison starts from: Unicode's normal form C, with
// one kind of apostrophe (also for the Hebrew geresh, and of quote for the gershayim) and minus, and
// without what only stretches a word and the invisible characters that users copy along.
func PlainForm(s string) string {
	if isASCII(s) {
		return s
	}
	return norm.NFC.String(strings.Map(func(r rune) rune {
		switch r {
		case '\u2019', '\uFF07', '\u05F3':
			return '\''
		case '\u05F4':
			return '"'
		case '\u2212', '\u2013': // as signs; a word has none
			return '-'
		case tatweel, '\uFE0E', '\uFE0F', '\u00AD', '\u200B', '\u200E', '\u200F', '\u2060', '\uFEFF':
			return -1
		}
		return r
	}, s))
}

// foldCase returns s without case and width. A Caser that folds has no state, so it can be
// shared.
func foldCase(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return norm.NFC.String(caseFolder.String(width.Fold.String(s)))
}

var caseFolder = cases.Fold()

// tatweel only stretches an Arabic word.
const tatweel = '\u0640'

// strokedLetters are letters with a mark that Unicode does not take apart.
var strokedLetters = map[rune]rune{
	'ł': 'l', 'Ł': 'L', 'ø': 'o', 'Ø': 'O', 'đ': 'd', 'Đ': 'D', 'ħ': 'h', 'Ħ': 'H', 'ŧ': 't', 'Ŧ': 'T',
	'ı': 'i',
}

// dropMarks is s, in form C, without the marks on Latin, Greek, Arabic and Hebrew letters.
func dropMarks(s string) string {
	if isASCII(s) {
		return s
	}
	on := false // marks at this place are dropped
	out := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			if on {
				return -1
			}
			return r
		}
		on = unicode.In(r, unicode.Latin, unicode.Greek, unicode.Arabic, unicode.Hebrew)
		if q, ok := strokedLetters[r]; ok {
			return q
		}
		return r
	}, norm.NFD.String(s))
	return norm.NFC.String(out)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
