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

// JSON is a view of a JSON document: its jq expressions and JSON pointers.
type JSON struct {
	sel, rem []*jqQuery
	view     pipeline.View
}

// jqQuery is a compiled jq expression, or a pointer.
type jqQuery struct {
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

func compileQueries(field string, list []pipeline.Selector) ([]*jqQuery, error) {
	if err := checkForm(field, list); err != nil {
		return nil, err
	}
	var out []*jqQuery
	var errs []error
	for _, s := range list {
		switch {
		case s.JQ != "":
			q, err := newJQQuery(s.JQ, field == "remove")
			if err != nil {
				errs = append(errs, unusableError(field, "a jq expression", s.JQ, err))
				continue
			}
			out = append(out, q)
		case s.Path != "":
			// Where it is an XPath, it is for pages in HTML and XML.
			if at := badEscape.FindStringIndex(s.Path); at != nil && !isWholeXPath(s.Path) {
				errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%q is not a JSON pointer: column %d: a ~ is written ~0 in it, and a / in a name ~1", s.Path, utf8.RuneCountInString(s.Path[:at[0]])+1)})
				continue
			}
			keys := strings.Split(s.Path[1:], "/")
			for i, k := range keys {
				keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(k)
			}
			out = append(out, &jqQuery{text: s.Path, pointer: keys})
		}
	}
	return out, errors.Join(errs...)
}

// newJQQuery compiles text. A library that panics must not end the program: views come from
// configurations and commands.
func newJQQuery(text string, remove bool) (q *jqQuery, err error) {
	err = recoverPanic(func() error {
		parsed, err := gojq.Parse(text)
		if err != nil {
			return jqParseError(text, err)
		}
		if err := (&jqChecker{}).checkQuery(parsed, true); err != nil {
			return uniqueErrors(err)
		}
		if remove {
			parsed = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: "del", Args: []*gojq.Query{parsed}}}}
		}
		code, err := gojq.Compile(parsed, jqOptions...)
		q = &jqQuery{text: text, code: code}
		return err
	})
	return q, err
}

// uniqueErrors returns err, joined errors, without those that say what an earlier one says.
func uniqueErrors(err error) error {
	var all []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return errors.New(strings.Join(all, "\n"))
}

// jqParseError returns err, which is why text cannot be parsed, with the column in which it is.
func jqParseError(text string, err error) error {
	e, ok := errors.AsType[*gojq.ParseError](err)
	if !ok {
		return err
	}
	// The parser has read the token, if there is one.
	at := min(max(e.Offset-len(e.Token), 0), len(text))
	column := utf8.RuneCountInString(text[:at]) + 1
	switch {
	case strings.HasPrefix(err.Error(), "unterminated"):
		return fmt.Errorf("column %d: the text that \" begins has no end", columnOfPart(text, `"`))
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
// it may change: one value after the other, in the order of the selectors. There are none where a jq
// expression gives none, such as the elements of an empty array. Where nothing matches it returns a
// *pipeline.FetchError of class FailSelectorGone.
func (j *JSON) Find(ctx context.Context, doc any) ([]any, error) {
	err := j.checkDocument(doc)
	if err != nil {
		return nil, err
	}
	budget := &jqBudget{Context: ctx}
	for _, q := range j.rem {
		if doc, err = q.removeFrom(budget, doc); err != nil {
			return nil, err
		}
	}
	if len(j.view.Select) == 0 {
		return []any{doc}, nil
	}
	var found []any
	var why error
	nothing := false // an expression gave no value
	for _, q := range j.sel {
		part, err := q.findIn(budget, doc)
		if fail, ok := errors.AsType[*jqError](err); ok {
			why = fail
		} else if err != nil {
			return nil, err
		}
		found = append(found, part...)
		nothing = nothing || part != nil && len(part) == 0
	}
	if len(found) > 0 || nothing {
		return found, nil
	}
	gone := Gone(j.view.Select, "JSON", forJSON)
	if fetch, ok := errors.AsType[*pipeline.FetchError](gone); ok && why != nil {
		fetch.Reason += fmt.Sprintf(" (%v)", why)
	}
	return nil, gone
}

// checkDocument returns why the jq expressions cannot be evaluated on doc, or nil.
func (j *JSON) checkDocument(doc any) error {
	for _, q := range append(j.rem[:len(j.rem):len(j.rem)], j.sel...) {
		if q.code != nil {
			return checkDocument(q.text, doc)
		}
	}
	return nil
}

// jqError is what jq finds wrong with a document.
type jqError struct{ error }

// findIn returns the values that q names in doc. Null is none.
func (q *jqQuery) findIn(budget *jqBudget, doc any) ([]any, error) {
	if q.code == nil {
		if v, ok := followPointer(doc, q.pointer); ok {
			return []any{v}, nil
		}
		return nil, nil
	}
	return q.run(budget, doc)
}

// removeFrom returns doc without what q names.
func (q *jqQuery) removeFrom(budget *jqBudget, doc any) (any, error) {
	if q.code == nil {
		if len(q.pointer) > 0 {
			if parent, ok := followPointer(doc, q.pointer[:len(q.pointer)-1]); ok {
				return removeValue(doc, parent, q.pointer), nil
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

func (q *jqQuery) run(budget *jqBudget, doc any) ([]any, error) {
	var found []any
	for it, n := q.code.RunWithContext(budget, doc, budget), 0; ; n++ {
		v, ok := it.Next()
		switch {
		case !ok && n == 0:
			return []any{}, nil
		case !ok:
			return found, nil
		}
		if err, failed := v.(error); failed {
			switch {
			case budget.Context.Err() != nil:
				return nil, budget.Context.Err()
			case budget.usedUp():
				return nil, Unreadable(fmt.Errorf("the jq expression %q takes too much time or memory on this page; name the values more directly", q.text))
			}
			return found, &jqError{err}
		}
		if v != nil {
			found = append(found, v)
			budget.made += scalarSize
		}
	}
}

// followPointer returns the value that the keys lead to from doc.
func followPointer(doc any, keys []string) (any, bool) {
	for _, k := range keys {
		switch v := doc.(type) {
		case map[string]any:
			next, ok := v[k]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			i, ok := arrayIndex(k, len(v))
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

// arrayIndex reads k as an index of an array of n elements.
func arrayIndex(k string, n int) (int, bool) {
	i, err := strconv.Atoi(k)
	return i, err == nil && i >= 0 && i < n && strconv.Itoa(i) == k
}

// removeValue takes out of doc what keys lead to; parent holds it. An array is made anew, since
// its parent holds its length.
func removeValue(doc, parent any, keys []string) any {
	last := keys[len(keys)-1]
	switch v := parent.(type) {
	case map[string]any:
		delete(v, last)
	case []any:
		i, ok := arrayIndex(last, len(v))
		if !ok {
			return doc
		}
		rest := append(v[:i:i], v[i+1:]...)
		if len(keys) == 1 {
			return rest
		}
		holder, _ := followPointer(doc, keys[:len(keys)-2])
		switch h := holder.(type) {
		case map[string]any:
			h[keys[len(keys)-2]] = rest
		case []any:
			if n, ok := arrayIndex(keys[len(keys)-2], len(h)); ok {
				h[n] = rest
			}
		}
	}
	return doc
}
