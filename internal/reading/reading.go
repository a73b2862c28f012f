// Package reading reports how often the text of a watched page contains the keywords, for a
// person who has just begun to watch it.
package reading

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/pipeline/text/stemmers"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/fetch"
	"github.com/vokter/vokter/stages/fetch/readers"
	"github.com/vokter/vokter/stages/fetch/readers/markdown"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
)

// Reading describes the current version of a document to one subscription.
type Reading struct {
	Title string
	Words int
	// Empty says that there is no text: the document holds nothing, or is absent.
	Empty bool
	// Value is the text of a document that is a single value, such as "95.00 EUR".
	Value string
	// Language is the language in which keywords are compared, a BCP 47 tag, and From says what
	// decided it.
	Language string
	From     text.LanguageSource
	// Baseline says that it is the first version, with which the next one is compared.
	Baseline bool
	// Unstemmed says that the subscription asks for stemming, but the language of the text is
	// unknown or has no stemmer.
	Unstemmed bool
	Keywords  []Keyword
	// Listed is how many URLs a sitemap has that this check read for the first time; otherwise 0. Linked
	// is how many linked pages the subscription watches. Bounded may say why others are not watched.
	Listed, Linked int
	Bounded        string
}

// Keyword is a keyword of the subscription.
type Keyword struct {
	Keyword string
	// Found is how often the text contains the keyword. If that is 0, Word may be a word of the
	// keyword that the text does not contain, and Near one that it does contain and that differs
	// by one letter.
	Found      int
	Word, Near string
	// OtherCase is how the text writes the keyword where it differs only in case, for a subscription that
	// tells case apart.
	OtherCase string
}

// Middleware wraps the stage of flow.GroupIndex. It calls report once, after the first
// check that leaves a version of the document of s. Where new links were found, it waits until the
// stage knows which of them are watched.
func Middleware(s pipeline.Subscription, report func(Reading)) flow.Middleware {
	page, _ := pageurl.Canonical(s.URL) // a Router refuses an invalid URL
	document := flow.DocumentOf(page, s)
	var reported atomic.Bool
	var baseline atomic.Bool // of the report that waits for links
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			if m.Key != page || m.Type != flow.TypeOutcome && m.Type != flow.TypeLinks || reported.Load() {
				return next.Process(ctx, tx, m)
			}
			before, err := loadDocument(tx.State(page), document)
			if err == nil {
				err = next.Process(ctx, tx, m)
			}
			if err != nil {
				return err
			}
			now, err := loadDocument(tx.State(page), document)
			if err != nil || now.n == 0 {
				return err
			}
			if s.Sitemap && m.Type == flow.TypeOutcome && now.linksHash != before.linksHash {
				tx.OnCommit(func() { baseline.Store(before.n == 0) })
				return nil
			}
			if m.Type == flow.TypeLinks && !s.Sitemap {
				return nil
			}
			r, err := newReading(now.version, s)
			if err != nil {
				return err
			}
			r.Baseline = before.n == 0 || baseline.Load()
			linked, bounded, err := index.Tree(tx.State(page), flow.Stamped{Page: page, Document: document, Subscription: s.WithDefaults()})
			if err != nil {
				return err
			}
			r.Linked, r.Bounded = len(linked), bounded
			if m.Type == flow.TypeLinks {
				found, err := flow.LinksFoundFrom(m)
				if err != nil {
					return err
				}
				r.Listed = len(found.URLs)
			}
			tx.OnCommit(func() {
				if !reported.Swap(true) {
					report(r)
				}
			})
			return nil
		})
	}
}

// storedDocument has what is stored of a document: the number of its version, 0 if there is none, the version,
// and the hash of the links of its page.
type storedDocument struct {
	n         uint64
	version   index.StoredVersion
	linksHash string
}

// loadDocument returns what is stored of a document.
func loadDocument(st flow.State, document string) (storedDocument, error) {
	p, err := index.Load(st)
	if err != nil {
		return storedDocument{}, err
	}
	d := p.Document(document)
	if d == nil || d.TextHash == "" {
		return storedDocument{}, nil
	}
	v, ok, err := index.LoadVersion(st, document, d.N)
	if err != nil || !ok {
		return storedDocument{}, err
	}
	return storedDocument{d.N, v, p.LinksHash}, nil
}

// newReading describes v to the subscription s.
func newReading(v index.StoredVersion, s pipeline.Subscription) (Reading, error) {
	content, err := flow.UnpackText(v.Packed)
	if err != nil {
		return Reading{}, err
	}
	language, from := v.Language, v.LanguageFrom
	if s.Language != "" {
		language, from = s.Language, text.FromSubscription
	}
	languages := text.NewLanguages(stemmers.All()...)
	doc := text.Analyze(content)
	r := Reading{Title: v.Title, Words: countWords(doc), Empty: content == "", Language: language, From: from, Unstemmed: s.Stem && !languages.Normalizer(language).HasStemmer()}
	if s.Value != nil {
		r.Value = strings.TrimSpace(content)
	}
	var words map[string]bool
	for _, keyword := range s.Keywords {
		k := Keyword{Keyword: keyword, Found: match.Count(content, language, keyword, s, languages)}
		if k.Found == 0 {
			k.OtherCase = findOtherCase(content, language, keyword, s, languages)
		}
		if k.Found == 0 && k.OtherCase == "" {
			if words == nil {
				words = wordSet(doc)
			}
			k.Word, k.Near = findMisspelling(keyword, words, func(word string) bool {
				return match.Count(content, language, word, s, languages) > 0
			})
		}
		r.Keywords = append(r.Keywords, k)
	}
	return r, nil
}

// countWords returns how many tokens of doc are words and not signs.
func countWords(doc *text.Doc) (n int) {
	for i := range doc.Tokens {
		if !text.IsSign(doc.Text(i)) {
			n++
		}
	}
	return n
}

// wordSet returns the words of doc.
func wordSet(doc *text.Doc) map[string]bool {
	words := make(map[string]bool)
	for i := range doc.Tokens {
		if w := doc.Text(i); !text.IsSign(w) {
			words[w] = true
		}
	}
	return words
}

// findOtherCase returns how content writes keyword where it differs only in case, which s tells apart.
func findOtherCase(content, language, keyword string, s pipeline.Subscription, languages *text.Languages) (found string) {
	if !s.MatchCase {
		return ""
	}
	s.MatchCase = false
	match.Occurrences(content, language, keyword, s, languages, func(o match.Occurrence) bool {
		found = o.Text
		return false
	})
	return found
}

// minWordLength is how many letters a word must have to count as misspelled.
const minWordLength = 3

// findMisspelling returns the first word of keyword that the text does not contain although it
// contains one that differs by a letter, and that one.
func findMisspelling(keyword string, words map[string]bool, holds func(string) bool) (word, near string) {
	for _, t := range text.Tokens(keyword) {
		word := keyword[t.Start:t.End]
		n := utf8.RuneCountInString(word)
		if n < minWordLength || text.IsSign(word) || holds(word) {
			continue
		}
		var alike []string
		for w := range words {
			if d := utf8.RuneCountInString(w) - n; d >= -1 && d <= 1 {
				alike = append(alike, w)
			}
		}
		if near, d := nearest.Name(word, alike); near != "" && d <= 1 {
			return word, near
		}
	}
	return "", ""
}

// File is a body of a page.
type File struct {
	// Name is for errors.
	Name string
	// ContentType is its media type. If it is empty, the body tells its type.
	ContentType string
	Body        []byte
	// Time is when it was found.
	Time time.Time
}

// Compare returns the change from old to new, two bodies of one page, in the document of view. ok is
// false where no word differs. page is the URL of the page.
func Compare(ctx context.Context, page string, old, new File, view pipeline.View) (c flow.Change, ok bool, err error) {
	before, was, err := readBody(ctx, old.ContentType, old.Body, view)
	if err != nil {
		return c, false, fmt.Errorf("%s cannot be read: %w", old.Name, err)
	}
	after, is, err := readBody(ctx, new.ContentType, new.Body, view)
	if err != nil {
		return c, false, fmt.Errorf("%s cannot be read: %w", new.Name, err)
	}
	keys := flow.UnpackKeys(before.Packed)
	if view.Items {
		if was, keys, ok = index.ItemsBase(before, after); !ok {
			return c, false, nil
		}
	}
	language, _ := text.LanguageChoice{Page: after.Language, Text: text.Detect(is)}.Language()
	c, ok = diff.ChangeOf(flow.Snapshot{
		Page: page, Document: flow.DocumentID(page, view), N: 2, Previous: 1, Time: new.Time,
		Language: language, Title: after.Title, ContentType: after.ContentType, Value: view.Value != nil, Old: was, New: is, OldKeys: keys, NewKeys: flow.UnpackKeys(after.Packed),
	})
	return c, ok, nil
}

// readBody reads a body as a fetched page is read, and returns the outcome and its text. Where
// contentType is empty, the body tells its type.
func readBody(ctx context.Context, contentType string, body []byte, view pipeline.View) (flow.Outcome, string, error) {
	header := http.Header{}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	outcomes := fetch.Read(ctx, flow.Request{Documents: []flow.RequestDocument{{View: view}}},
		fetch.Page{Status: http.StatusOK, Header: header, Body: body}, fetch.NewReaders(append(readers.Builtin(), markdown.New())...))
	if len(outcomes) == 0 {
		return flow.Outcome{}, "", context.Cause(ctx)
	}
	o := outcomes[0]
	if o.Kind != flow.OutcomeRead {
		return o, "", errors.New(o.Reason)
	}
	content, err := flow.UnpackText(o.Packed)
	return o, content, err
}
