package vokter

import (
	"github.com/vokter/vokter/pipeline"

	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/fetch"
	"github.com/vokter/vokter/stages/fetch/readers/html"
	"github.com/vokter/vokter/stages/fetch/readers/plain"
)

// plugins returns the readers and languages that cfg asks for, beside the built-in ones.
func plugins(cfg Config) (*fetch.Readers, *text.Languages) {
	readers := fetch.NewReaders(html.New(), plain.New())
	for _, r := range cfg.Readers {
		readers.Register(r)
	}
	languages := text.NewLanguages()
	for _, s := range cfg.Stemmers {
		languages.Register(s)
	}
	return readers, languages
}

// RegisterReader makes rd read the content types that it names, from the next check on,
// in place of the reader that did. It may be called at any time.
func (r *Router) RegisterReader(rd pipeline.Reader) { r.readers.Register(rd) }

// UnregisterReader makes pages of these content types unreadable: their checks fail, and
// what was read before stands. It may be called at any time.
func (r *Router) UnregisterReader(contentTypes ...string) { r.readers.Unregister(contentTypes...) }

// RegisterStemmer makes s stem the words of its language, in place of the stemmer that
// did, from the next change on. It may be called at any time.
func (r *Router) RegisterStemmer(s pipeline.Stemmer) { r.languages.Register(s) }

// UnregisterStemmer leaves the words of a language, a BCP 47 primary subtag, unstemmed
// from the next change on. It may be called at any time.
func (r *Router) UnregisterStemmer(language string) { r.languages.Unregister(language) }

// RegisterStopwords makes words those of no significance in a language, a BCP 47 primary
// subtag, in place of those that were; nil is none. It may be called at any time.
func (r *Router) RegisterStopwords(language string, words []string) {
	r.languages.RegisterStopwords(language, words)
}
