package config

import (
	"fmt"
	"slices"
	"strings"
)

// Error is one mistake in a configuration: where it is, what is wrong, what to do.
type Error struct {
	File string
	// Line and Column count from 1, columns in characters. Both are 0 where the mistake
	// is in no particular place, such as a file that cannot be read.
	Line, Column int
	Message      string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Errors are all mistakes in a configuration, in the order of their places.
type Errors []*Error

// Error returns one line for each mistake.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes.
func (es Errors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

func (es Errors) sort() {
	slices.SortStableFunc(es, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}

// oneLine keeps a message from breaking the form of one mistake per line.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

var (
	_ error = (*Error)(nil)
	_ error = Errors(nil)
)
