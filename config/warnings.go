package config

import (
	"fmt"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// Warnings returns what s asks for in vain, though it is no mistake: stems or stop words
// of a language that it names and that has none. Stemmers that a program registers are
// not known here.
func Warnings(s pipeline.Subscription) []*pipeline.FieldError {
	if s.Language == "" {
		return nil // it is detected, page by page
	}
	known := text.NewLanguages()
	n := known.Normalizer(s.Language)
	var all []*pipeline.FieldError
	warn := func(field, what string, languages []string) {
		all = append(all, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf(
			"has no effect: there are no %s for the language %q, only for %s", what, s.Language, strings.Join(languages, ", "))})
	}
	if s.Stem && !n.HasStemmer() {
		warn("stem", "stems", known.WithStemmer())
	}
	if s.FilterStopwords && !n.HasStopwords() {
		warn("filter_stopwords", "stop words", known.WithStopwords())
	}
	return all
}

// warn collects the warnings about the subscription s at path.
func (d *decoder) warn(path string, s pipeline.Subscription) {
	for _, w := range Warnings(s) {
		at := join(path, w.Field)
		p := d.place(at)
		d.warned = append(d.warned, &Error{d.file, p.line, p.column, fmt.Sprintf("%s %s", at, w.Reason)})
	}
}
