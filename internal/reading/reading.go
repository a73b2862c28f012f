// Package reading says what the text of a page that is watched holds of the keywords: what a
// person wants to know who begins to watch it.
package reading

import (
	"context"
	"sync/atomic"
	"unicode/utf8"

	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
)

// Reading is the text of a document that stands, as a subscription reads it.
type Reading struct {
	Title string
	Words int
	// Baseline says that it is the first version: later ones are compared with it.
	Baseline bool
	// Unstemmed says that the subscription asks for stems, and the language of the text, which
	// may be unknown, has none.
	Unstemmed bool
	Keywords  []Keyword
}

// Keyword is a keyword of the subscription.
type Keyword struct {
	Keyword string
	// Found is how often the text holds it. With 0, Word may be one of its words that the text
	// does not hold, and Near one that it does hold and that differs by one letter, or by case only.
	Found      int
	Word, Near string
}

// Middleware wraps the stage of pipeline.GroupIndex, and calls say after the first check that
// leaves a version of the document of s, once.
func Middleware(s pipeline.Subscription, say func(Reading)) flow.Middleware {
	page, _ := pageurl.Canonical(s.URL) // a Router refuses what is no URL
	document := flow.DocumentID(page, s.View)
	var said atomic.Bool
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			if m.Type != flow.TypeOutcome || m.Key != page || said.Load() {
				return next.Process(ctx, tx, m)
			}
			before, _, err := standing(tx.State(page), document)
			if err == nil {
				err = next.Process(ctx, tx, m)
			}
			if err != nil {
				return err
			}
			n, v, err := standing(tx.State(page), document)
			if err != nil || n == 0 {
				return err
			}
			r, err := read(v, s)
			if err != nil {
				return err
			}
			r.Baseline = before == 0
			tx.OnCommit(func() {
				if !said.Swap(true) {
					say(r)
				}
			})
			return nil
		})
	}
}

// standing returns the number of the version that stands, 0 for none, and that version.
func standing(st flow.State, document string) (uint64, index.StoredVersion, error) {
	p, err := index.Load(st)
	if err != nil {
		return 0, index.StoredVersion{}, err
	}
	d := p.Document(document)
	if d == nil || d.TextHash == "" {
		return 0, index.StoredVersion{}, nil
	}
	v, ok, err := index.LoadVersion(st, document, d.N)
	if err != nil || !ok {
		return 0, index.StoredVersion{}, err
	}
	return d.N, v, nil
}

func read(v index.StoredVersion, s pipeline.Subscription) (Reading, error) {
	content, err := flow.UnpackText(v.Packed)
	if err != nil {
		return Reading{}, err
	}
	language := v.Language
	if s.Language != "" {
		language = s.Language
	}
	languages := text.NewLanguages()
	doc := text.Analyze(content)
	r := Reading{Title: v.Title, Words: len(doc.Tokens), Unstemmed: s.Stem && !languages.Normalizer(language).HasStemmer()}
	var words map[string]bool
	for _, keyword := range s.Keywords {
		k := Keyword{Keyword: keyword, Found: match.Count(content, language, keyword, s, languages)}
		if k.Found == 0 {
			if words == nil {
				words = vocabulary(doc)
			}
			k.Word, k.Near = misspelled(keyword, words, func(word string) bool {
				return match.Count(content, language, word, s, languages) > 0
			})
		}
		r.Keywords = append(r.Keywords, k)
	}
	return r, nil
}

func vocabulary(doc *text.Doc) map[string]bool {
	words := make(map[string]bool)
	for i := range doc.Tokens {
		words[doc.Text(i)] = true
	}
	return words
}

// leastWord is how many letters a word must have to be taken for a misspelled one.
const leastWord = 3

// misspelled returns the first word of keyword that the text does not hold while it holds one that
// differs by a letter, and that one.
func misspelled(keyword string, words map[string]bool, holds func(string) bool) (word, near string) {
	for _, t := range text.Tokens(keyword) {
		word := keyword[t.Start:t.End]
		n := utf8.RuneCountInString(word)
		if n < leastWord || holds(word) {
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
