package selector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// Text is a view of text: its line ranges, its regular expressions, and ranges between two of
// these. It is for one reading of one page, whose lines come in order.
type Text struct {
	sel, rem []*lineSelector
	view     pipeline.View
	matched  bool // a line held something selected
}

// lineSelector is one selector for text, and how far the text is read.
type lineSelector struct {
	first, last        int            // a range of lines, where last is not 0
	match              *regexp.Regexp // or what it matches
	from, to           *regexp.Regexp // or a range between two lines
	hasBegun, hasEnded bool           // the range
}

// NewText compiles view, or returns what is wrong with it, joined *pipeline.FieldErrors.
func NewText(view pipeline.View) (*Text, error) {
	sel, err := compileLines("select", view.Select)
	rem, err2 := compileLines("remove", view.Remove)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return &Text{sel: sel, rem: rem, view: view}, nil
}

func forText(s pipeline.Selector) bool {
	return s.Lines != "" || s.Regexp != "" || s.From != "" && isText(s.From)
}

func compileLines(field string, list []pipeline.Selector) ([]*lineSelector, error) {
	if err := checkForm(field, list); err != nil {
		return nil, err
	}
	var out []*lineSelector
	var errs []error
	pattern := func(p string) *regexp.Regexp {
		res, err := pipeline.View{Ignore: []string{p}}.Patterns()
		if err != nil {
			reason := err.Error()
			if fe, ok := errors.AsType[*pipeline.FieldError](err); ok {
				reason = fe.Reason
			}
			errs = append(errs, &pipeline.FieldError{Field: field, Reason: reason})
			return nil
		}
		return res[0]
	}
	for _, s := range list {
		l := &lineSelector{}
		switch {
		case s.Lines != "":
			var err error
			if l.first, l.last, err = parseLines(s.Lines); err != nil {
				errs = append(errs, unusableError(field, "a range of lines", s.Lines, err))
			}
		case s.Regexp != "":
			l.match = pattern(s.Regexp)
		case s.From != "" && isText(s.From):
			l.from = pattern(pipeline.ParseSelector(s.From).Regexp)
			if s.To != "" {
				l.to = pattern(pipeline.ParseSelector(s.To).Regexp)
			}
		default:
			continue
		}
		out = append(out, l)
	}
	return out, errors.Join(errs...)
}

// parseLines reads "10-20", "10-", "-20" or "10".
func parseLines(s string) (first, last int, err error) {
	const form = "; write it as 10-20, 10-, -20 or 10"
	number := func(s string, absent int) int {
		if s = strings.TrimSpace(s); s == "" {
			return absent
		}
		n, wrong := strconv.Atoi(s)
		if wrong != nil && err == nil {
			err = fmt.Errorf("%q is not the number of a line%s", s, form)
		}
		return n
	}
	from, to, isRange := strings.Cut(s, "-")
	first, last = number(from, 1), number(to, math.MaxInt)
	if !isRange {
		last = first
	}
	switch {
	case err != nil:
	case strings.TrimSpace(from) == "" && strings.TrimSpace(to) == "":
		err = errors.New("it names no line" + form)
	case first < 1 || last < 1:
		err = errors.New("the first line is 1, so there is no line 0")
	case last < first:
		err = fmt.Errorf("line %d comes before line %d; write the smaller number first", last, first)
	}
	return first, last, err
}

// All reports whether t takes nothing away from a text.
func (t *Text) All() bool { return len(t.view.Select)+len(t.rem) == 0 }

// pieceSize is how much of a line a regular expression is matched against at once, in bytes. To
// find one match takes at most this times 1000 steps, the largest program of an expression, about a second.
const pieceSize = 32 << 10

// Line returns what of the line of this number is wanted: all of it, parts of it, or nothing.
// The numbers must rise. It returns ctx's error if that is done first.
func (t *Text) Line(ctx context.Context, number int, line string) (parts []string, err error) {
	if len(t.view.Select) == 0 {
		parts = []string{line}
	}
	for _, l := range t.sel {
		found, err := l.partsIn(ctx, number, line)
		if err != nil {
			return nil, err
		}
		t.matched = t.matched || len(found) > 0
		if len(found) > len(parts) || len(found) == 1 && len(found[0]) == len(line) {
			parts = found
		}
	}
	for _, l := range t.rem {
		if parts, err = l.removeFrom(ctx, number, line, parts); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// Blocks calls add with what of the line of this number is wanted, as Line says it.
func (t *Text) Blocks(ctx context.Context, number int, line string, add func(part string)) error {
	if t.All() {
		add(line)
		return nil
	}
	parts, err := t.Line(ctx, number, line)
	for _, part := range parts {
		add(part)
	}
	return err
}

// End returns a *pipeline.FetchError of class FailSelectorGone if no line held what is selected.
func (t *Text) End() error {
	if len(t.view.Select) == 0 || t.matched {
		return nil
	}
	return Gone(t.view.Select, "text", forText)
}

// partsIn returns the parts of line that l names.
func (l *lineSelector) partsIn(ctx context.Context, number int, line string) ([]string, error) {
	if l.match != nil {
		return findMatches(ctx, l.match, line)
	}
	if within, err := l.isInRange(ctx, number, line); err != nil || !within {
		return nil, err
	}
	return []string{line}, nil
}

// removeFrom returns parts without those that l names.
func (l *lineSelector) removeFrom(ctx context.Context, number int, line string, parts []string) ([]string, error) {
	if l.match == nil {
		within, err := l.isInRange(ctx, number, line)
		if within {
			parts = nil
		}
		return parts, err
	}
	out := make([]string, 0, len(parts))
	for _, part := range parts {
		rest, err := Blank(ctx, l.match, part)
		if err != nil {
			return nil, err
		}
		out = append(out, rest)
	}
	return out, nil
}

// isInRange reports whether the line is in the range l.
func (l *lineSelector) isInRange(ctx context.Context, number int, line string) (bool, error) {
	if l.last > 0 {
		return l.first <= number && number <= l.last, nil
	}
	if l.hasEnded {
		return false, nil
	}
	re := l.from
	if l.hasBegun {
		if re = l.to; re == nil {
			return true, nil
		}
	}
	found, err := findMatches(ctx, re, line)
	if err != nil {
		return false, err
	}
	switch {
	case len(found) == 0:
		return l.hasBegun, nil
	case l.hasBegun:
		l.hasEnded = true
		return false, nil
	}
	l.hasBegun = true
	return true, nil
}

// findMatches returns what re matches in s, which is taken in pieces.
func findMatches(ctx context.Context, re *regexp.Regexp, s string) ([]string, error) {
	var found []string
	_, err := replaceInPieces(ctx, re, s, func(match string) string {
		if match != "" {
			found = append(found, match)
		}
		return ""
	})
	return found, err
}

// Blank replaces what re matches in s by a space. Long texts are taken in pieces. It returns
// ctx's error if that is done first.
func Blank(ctx context.Context, re *regexp.Regexp, s string) (string, error) {
	return replaceInPieces(ctx, re, s, func(string) string { return " " })
}

// timeoutPanic ends what package regexp does, which knows no deadline.
type timeoutPanic struct{}

// replaceInPieces replaces what re matches in s by what replace returns.
func replaceInPieces(ctx context.Context, re *regexp.Regexp, s string, replace func(string) string) (out string, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case timeoutPanic:
			err = ctx.Err()
		default:
			panic(r)
		}
	}()
	var b strings.Builder
	for first := true; s != "" || first; first = false {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		piece := s[:pieceEnd(s)]
		s = s[len(piece):]
		b.WriteString(re.ReplaceAllStringFunc(piece, func(match string) string {
			if ctx.Err() != nil {
				panic(timeoutPanic{})
			}
			return replace(match)
		}))
	}
	return b.String(), nil
}

// pieceEnd returns where the first piece of s ends: at the last space that fits, if any.
func pieceEnd(s string) int {
	if len(s) <= pieceSize {
		return len(s)
	}
	if i := strings.LastIndexByte(s[:pieceSize], ' '); i > 0 {
		return i
	}
	end := pieceSize
	for end > pieceSize-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return end
}
