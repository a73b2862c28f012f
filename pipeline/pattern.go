package pipeline

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// Bounds of View.Ignore. A program is what a regular expression is compiled to: the time that
// it takes is its instructions times the characters that it is matched against.
const (
	MaxPatterns      = 100
	MaxPatternLength = 1000 // characters
	MaxProgram       = 1000 // instructions
)

// CompilePattern compiles one regular expression of View.Ignore. Its error says, in words for
// the user, why it cannot be used.
func CompilePattern(pattern string) (*regexp.Regexp, error) {
	if n := utf8.RuneCountInString(pattern); n > MaxPatternLength {
		return nil, fmt.Errorf("a regular expression of %d characters is too long; at most %d", n, MaxPatternLength)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%q is not a regular expression: %w", pattern, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%q is not a regular expression: %w", pattern, err)
	}
	if n := len(program.Inst); n > MaxProgram {
		return nil, fmt.Errorf("%q is too large: it compiles to %d instructions, and at most %d are possible; write * or + in place of large counts such as {1,30}", pattern, n, MaxProgram)
	}
	return regexp.Compile(pattern)
}
