package selector

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/vokter/vokter/pipeline"
)

// maxInstructions bounds the evaluation of all jq expressions of a view on one page. It takes some seconds.
const maxInstructions = 20_000_000

// JSON is a view of a JSON document: its jq expressions and JSON pointers.
type JSON struct {
	sel, rem []*query
	view     pipeline.View
}

// query is a compiled jq expression, or a pointer.
type query struct {
	text    string
	code    *gojq.Code
	pointer []string
}

// NewJSON compiles view, or returns what is wrong with it, joined *pipeline.FieldErrors.
func NewJSON(view pipeline.View) (*JSON, error) {
	sel, err := compileQueries("select", view.Select)
	rem, err2 := compileQueries("remove", view.Remove)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return &JSON{sel, rem, view}, nil
}

// badEscape finds a tilde of a JSON pointer that escapes nothing (RFC 6901).
var badEscape = regexp.MustCompile(`~([^01]|$)`)

func forJSON(s pipeline.Selector) bool { return s.JQ != "" || s.Path != "" }

func compileQueries(field string, list []pipeline.Selector) ([]*query, error) {
	if err := wellFormed(field, list); err != nil {
		return nil, err
	}
	var out []*query
	var errs []error
	for _, s := range list {
		switch {
		case s.JQ != "":
			q, err := newQuery(s.JQ, field == "remove")
			if err != nil {
				errs = append(errs, unusable(field, "a jq expression", s.JQ, err))
				continue
			}
			out = append(out, q)
		case s.Path != "":
			// Where it is an XPath, it is for pages in HTML and XML.
			if at := badEscape.FindStringIndex(s.Path); at != nil && !isXPath(s.Path) {
				errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%q is not a JSON pointer: column %d: a ~ is written ~0 in it, and a / in a name ~1", s.Path, utf8.RuneCountInString(s.Path[:at[0]])+1)})
				continue
			}
			keys := strings.Split(s.Path[1:], "/")
			for i, k := range keys {
				keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(k)
			}
			out = append(out, &query{text: s.Path, pointer: keys})
		}
	}
	return out, errors.Join(errs...)
}

// newQuery compiles text. A library that panics must not end the program: views come from
// configurations and commands.
func newQuery(text string, remove bool) (q *query, err error) {
	err = guarded(func() error {
		parsed, err := gojq.Parse(text)
		if err != nil {
			return jqMistake(text, err)
		}
		if err := (&jqChecker{}).query(parsed, true); err != nil {
			return eachOnce(err)
		}
		if remove {
			if parsed, err = gojq.Parse("del(" + text + "\n)"); err != nil { // text may end with a comment
				return err
			}
		}
		code, err := gojq.Compile(parsed)
		q = &query{text: text, code: code}
		return err
	})
	return q, err
}

// eachOnce returns err, joined errors, without those that say what an earlier one says.
func eachOnce(err error) error {
	var all []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return errors.New(strings.Join(all, "\n"))
}

// jqMistake returns err, which is why text cannot be parsed, with the column in which it is.
func jqMistake(text string, err error) error {
	e, ok := errors.AsType[*gojq.ParseError](err)
	if !ok {
		return err
	}
	// The parser has read the token, if there is one.
	at := min(max(e.Offset-len(e.Token), 0), len(text))
	column := utf8.RuneCountInString(text[:at]) + 1
	switch {
	case strings.HasPrefix(err.Error(), "unterminated"):
		return fmt.Errorf("column %d: the text that \" begins has no end", columnOf(text, `"`))
	case strings.HasPrefix(err.Error(), "unexpected token"):
		return fmt.Errorf("column %d: there is %s where an operator, a filter or the end is expected", column, e.Token)
	case strings.HasPrefix(err.Error(), "unexpected EOF"):
		return fmt.Errorf("column %d: it ends where a filter or a closing bracket is expected", utf8.RuneCountInString(text)+1)
	}
	return fmt.Errorf("column %d: %w", column, err)
}

// All reports whether j takes nothing away from a document.
func (j *JSON) All() bool { return len(j.view.Select) == 0 && len(j.rem) == 0 }

// Find returns what j names in doc, which is as package json decodes it with UseNumber and which
// it may change: one value after the other, in the order of the selectors. Where nothing matches
// it returns a *pipeline.FetchError of class FailSelectorGone.
func (j *JSON) Find(ctx context.Context, doc any) ([]any, error) {
	var err error
	budget := &steps{Context: ctx}
	for _, q := range j.rem {
		if doc, err = q.without(budget, doc); err != nil {
			return nil, err
		}
	}
	if len(j.view.Select) == 0 {
		return []any{doc}, nil
	}
	var found []any
	var why error
	for _, q := range j.sel {
		part, err := q.in(budget, doc)
		if fail, ok := errors.AsType[*jqError](err); ok {
			why = fail
		} else if err != nil {
			return nil, err
		}
		found = append(found, part...)
	}
	if len(found) > 0 {
		return found, nil
	}
	gone := Gone(j.view.Select, "JSON", forJSON)
	if fetch, ok := errors.AsType[*pipeline.FetchError](gone); ok && why != nil {
		fetch.Reason += fmt.Sprintf(" (%v)", why)
	}
	return nil, gone
}

// jqError is what jq finds wrong with a document.
type jqError struct{ error }

// in returns the values that q names in doc. Null is none.
func (q *query) in(budget *steps, doc any) ([]any, error) {
	if q.code == nil {
		if v, ok := follow(doc, q.pointer); ok {
			return []any{v}, nil
		}
		return nil, nil
	}
	return q.run(budget, doc)
}

// without returns doc without what q names.
func (q *query) without(budget *steps, doc any) (any, error) {
	if q.code == nil {
		if len(q.pointer) > 0 {
			if parent, ok := follow(doc, q.pointer[:len(q.pointer)-1]); ok {
				return remove(doc, parent, q.pointer), nil
			}
		}
		return doc, nil
	}
	out, err := q.run(budget, doc)
	if _, ok := errors.AsType[*jqError](err); ok {
		return doc, nil // what is to be removed is not there
	}
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return out[0], nil
}

func (q *query) run(budget *steps, doc any) ([]any, error) {
	var found []any
	for it := q.code.RunWithContext(budget, doc); ; {
		v, ok := it.Next()
		if !ok {
			return found, nil
		}
		if err, failed := v.(error); failed {
			switch {
			case budget.Context.Err() != nil:
				return nil, budget.Context.Err()
			case budget.n > maxInstructions:
				return nil, Unreadable(fmt.Errorf("the jq expression %q takes too long on this page; name the values more directly", q.text))
			}
			return found, &jqError{err}
		}
		if v != nil {
			found = append(found, v)
		}
	}
}

// steps is a context that is done after maxInstructions: gojq asks before each instruction
// whether its context is done.
type steps struct {
	context.Context
	n int
}

var done = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done counts an instruction.
func (s *steps) Done() <-chan struct{} {
	if s.n++; s.n > maxInstructions {
		return done
	}
	return s.Context.Done()
}

// Err says why the evaluation ends.
func (s *steps) Err() error {
	if s.n > maxInstructions {
		return context.DeadlineExceeded
	}
	return s.Context.Err()
}

// follow returns the value that the keys lead to from doc.
func follow(doc any, keys []string) (any, bool) {
	for _, k := range keys {
		switch v := doc.(type) {
		case map[string]any:
			next, ok := v[k]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			i, ok := index(k, len(v))
			if !ok {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// index reads k as an index of an array of n elements.
func index(k string, n int) (int, bool) {
	i, err := strconv.Atoi(k)
	return i, err == nil && i >= 0 && i < n && strconv.Itoa(i) == k
}

// remove takes out of doc what keys lead to; parent holds it. An array is made anew, since
// its parent holds its length.
func remove(doc, parent any, keys []string) any {
	last := keys[len(keys)-1]
	switch v := parent.(type) {
	case map[string]any:
		delete(v, last)
	case []any:
		i, ok := index(last, len(v))
		if !ok {
			return doc
		}
		rest := append(v[:i:i], v[i+1:]...)
		if len(keys) == 1 {
			return rest
		}
		holder, _ := follow(doc, keys[:len(keys)-2])
		switch h := holder.(type) {
		case map[string]any:
			h[keys[len(keys)-2]] = rest
		case []any:
			if n, ok := index(keys[len(keys)-2], len(h)); ok {
				h[n] = rest
			}
		}
	}
	return doc
}
