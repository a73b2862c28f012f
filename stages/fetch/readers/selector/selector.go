// Package selector compiles the selectors of a view and finds what they name: in pages that
// are trees (Markup), in JSON (JSON) and in text (Text).
package selector

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// Bounds of a view.
const (
	maxSelectors   = 100
	maxSelectorLen = 1000 // characters
)

// Validate returns what is wrong with the selectors of view, joined *pipeline.FieldErrors, or
// nil. A view may hold selectors for several types of pages.
func Validate(view pipeline.View) error {
	_, err := NewMarkup(view)
	_, err2 := NewJSON(view)
	_, err3 := NewText(view)
	return errors.Join(err, err2, err3, errors.Join(checkForm("select", view.Select), checkForm("remove", view.Remove)))
}

// checkForm returns what is wrong with list before any selector is compiled.
func checkForm(field string, list []pipeline.Selector) error {
	if len(list) > maxSelectors {
		return &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%d selectors are too many; at most %d", len(list), maxSelectors)}
	}
	var errs []error
	for _, s := range list {
		given := 0
		for _, expr := range []string{s.CSS, s.XPath, s.Path, s.JQ, s.Lines, s.Regexp, s.From} {
			if expr != "" {
				given++
			}
			if n := utf8.RuneCountInString(expr); n > maxSelectorLen {
				errs = append(errs, tooLongError(field, n))
			}
		}
		if n := utf8.RuneCountInString(s.To); n > maxSelectorLen {
			errs = append(errs, tooLongError(field, n))
		}
		if given != 1 || (s.To != "" && s.From == "") {
			errs = append(errs, &pipeline.FieldError{Field: field, Reason: "a selector is either one expression or a range from and to"})
		}
		for _, end := range []string{s.From, s.To} {
			if p := pipeline.ParseSelector(end); p.JQ != "" || p.Lines != "" || p.Path != "" {
				errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%q cannot be an end of a range; a range is between CSS selectors, xpath: or re:", end)})
			}
		}
		if (s.From != "" && s.To != "") && isText(s.From) != isText(s.To) {
			errs = append(errs, &pipeline.FieldError{Field: field, Reason: "one end of the range is for text and the other one is not; use re: for both or for neither"})
		}
	}
	return errors.Join(errs...)
}

func tooLongError(field string, n int) error {
	return &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("a selector of %d characters is too long; at most %d", n, maxSelectorLen)}
}

// isText reports whether the end of a range is for text.
func isText(end string) bool { return pipeline.ParseSelector(end).Regexp != "" }

// unusableError is the reason why expr, which the user wrote, cannot be used.
func unusableError(field, what, expr string, err error) error {
	return &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%q is not %s: %s", expr, what, printable(err))}
}

// printable returns the text of err, quoted if it has characters that would not be seen, such as those
// that steer a terminal: errors of the parsers repeat what the user wrote.
func printable(err error) string {
	s := err.Error()
	if strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// Unreadable is the failed check of a page whose view is wrong.
func Unreadable(err error) error {
	return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: err.Error()}
}

// Gone is the failed check of a page in which none of list matches anything. kind names the
// page's type, and fits says which selectors are for it.
func Gone(list []pipeline.Selector, kind string, fits func(pipeline.Selector) bool) error {
	var names []string
	some := false
	for _, s := range list {
		some = some || fits(s)
		switch {
		case s.From != "" && s.To != "":
			names = append(names, fmt.Sprintf("from %q to %q", s.From, s.To))
		case s.From != "":
			names = append(names, fmt.Sprintf("from %q", s.From))
		default:
			names = append(names, fmt.Sprintf("%q", s))
		}
	}
	reason := "nothing on the page matches " + strings.Join(names, ", ")
	if !some {
		reason += ": it is " + kind + ", which such a selector is not for"
	}
	return &pipeline.FetchError{Class: pipeline.FailSelectorGone, Reason: reason}
}
