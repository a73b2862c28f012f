package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// CheckSubscription returns all that is wrong with s. The field of a value in a list has
// its index: keywords[0].
func CheckSubscription(s vokter.Subscription) []*pipeline.FieldError {
	var errs []*pipeline.FieldError
	bad := func(field string, err error) {
		if err != nil {
			errs = append(errs, &pipeline.FieldError{Field: field, Reason: err.Error()})
		}
	}
	_, err := CheckURL(s.URL)
	bad("url", err)
	for i, k := range s.Keywords {
		bad(fmt.Sprintf("keywords[%d]", i), text.ValidKeyword(k))
	}
	for i, e := range s.Events {
		bad(fmt.Sprintf("events[%d]", i), checkEvent(e))
	}
	for i, re := range s.Ignore {
		bad(fmt.Sprintf("ignore[%d]", i), checkRegexp(re))
	}
	if s.Language != "" {
		if _, err := language.Parse(s.Language); err != nil {
			bad("language", fmt.Errorf("%q is not a language tag; write one such as en or pt-BR", s.Language))
		}
	}
	// Of the other fields the vocabulary says what is wrong.
	for _, err := range leaves(s.Validate()) {
		fe, ok := errors.AsType[*pipeline.FieldError](err)
		if ok && !slices.Contains([]string{"url", "events", "ignore"}, fe.Field) {
			errs = append(errs, fe)
		}
	}
	return errs
}

// CheckURL returns the canonical spelling of a page's URL, or why it cannot be watched.
func CheckURL(raw string) (string, error) {
	page, err := pipeline.CanonicalURL(raw)
	if err != nil {
		return "", err
	}
	if scheme, _, _ := strings.Cut(page, ":"); scheme != "http" && scheme != "https" {
		return "", fmt.Errorf("%q has the scheme %s; only http and https can be watched", raw, scheme)
	}
	return page, nil
}

func checkEvent(e pipeline.Event) error {
	known := []string{string(pipeline.Added), string(pipeline.Removed)}
	if !slices.Contains(known, string(e)) {
		return fmt.Errorf("%q is not an event; %s", string(e), nearest.Hint(string(e), known))
	}
	return nil
}

func checkRegexp(re string) error {
	if _, err := regexp.Compile(re); err != nil {
		return fmt.Errorf("%q is not a regular expression: %w", re, err)
	}
	return nil
}

// leaves splits what errors.Join joined; an error that wraps several in a sentence of
// its own stays whole.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}
