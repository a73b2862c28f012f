package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/values"
)

// maxPassed is how many sentences of Text.Passed are passed on, each of at most maxTitle bytes.
const maxPassed = 10

// Extractor may be implemented by a pipeline.Reader. It names the rules by which the reader makes text,
// and changes with them. Without it the name is the media type.
type Extractor interface{ Extractor() string }

// noText is why a page without text is a failed check.
var noText = &pipeline.FetchError{Class: pipeline.FailEmpty, Reason: "there is no text on the page"}

// text reads one document, and returns the name of the extractor. The text may be empty: where the page holds nothing,
// where what is selected is there and has no text, and where the document is expected to be absent. What a page strikes
// out is no value, unless there is no other.
func (s source) text(ctx context.Context, view pipeline.View) (t pipeline.Text, by string, err error) {
	if v := view.Value; v != nil && v.Offer == "" && !v.Text() && values.StrikesOut(s.Raw) {
		valid := view
		valid.Remove = append(slices.Clip(view.Remove), pipeline.Selector{CSS: values.StruckOut})
		if t, by, err = s.selected(ctx, valid); err == nil {
			return t, by, nil
		}
	}
	t, by, err = s.selected(ctx, view)
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok && view.Expect == pipeline.ExpectAbsent && (e.Class == pipeline.FailSelectorGone || e.Class == pipeline.FailEmpty) {
		return pipeline.Text{Empty: true}, by, nil
	}
	return t, by, err
}

// selected reads what a view selects.
func (s source) selected(ctx context.Context, view pipeline.View) (t pipeline.Text, by string, err error) {
	if len(bytes.TrimSpace(s.Body)) == 0 {
		return t, "", &pipeline.FetchError{Class: pipeline.FailEmpty, Reason: "the page is empty"}
	}
	ignored, err := compileIgnore(view.Ignore)
	if err != nil {
		return t, "", err
	}
	err = recoverPanic(func() (err error) {
		by = extractorName(s.reader.Reader)
		if t, err = s.reader.Read(ctx, s.Raw, view); err == nil && view.Items {
			t, err = onlyItems(ctx, t, ignored)
		}
		return err
	})
	if _, ok := errors.AsType[*pipeline.FetchError](err); err != nil && !ok {
		err = &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "the page could not be read", Err: err}
	}
	if err != nil {
		return t, by, err
	}
	if !view.Items {
		if t.Content, t.Keys, err = blankIgnored(ctx, strings.ToValidUTF8(t.Content, "\ufffd"), t.Keys, ignored); err != nil {
			return t, by, err
		}
	}
	if view.Value != nil {
		err = recoverPanic(func() (err error) {
			t, err = values.Extract(ctx, *view.Value, s.Raw, t, baseType(s.MediaType()) == "application/json")
			return err
		})
		if err != nil {
			return t, by, err
		}
	}
	t.Passed = t.Passed[:min(len(t.Passed), maxPassed)]
	for i, p := range t.Passed {
		t.Passed[i] = blocks.Truncate(p, maxTitle)
	}
	t.Empty = t.Empty || t.Items != nil
	switch {
	case blocks.Blank(t.Content):
		if !t.Empty && len(view.Select) == 0 {
			return t, by, noText
		}
		t.Content = ""
	case len(t.Content) > pipeline.MaxText:
		return t, by, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the text is larger than 2 MiB"}
	}
	t.Title, t.Language = blocks.Truncate(t.Title, maxTitle), blocks.Truncate(t.Language, maxTitle)
	return t, by, nil
}

// extractorName returns the name of the rules by which r makes text.
func extractorName(r pipeline.Reader) string {
	if e, ok := r.(Extractor); ok {
		return e.Extractor()
	}
	if types := r.ContentTypes(); len(types) > 0 {
		return types[0]
	}
	return ""
}

// recoverPanic turns a panic of f into an error.
func recoverPanic(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "the reader gave up on this page", Err: fmt.Errorf("panic: %v\n%s", r, debug.Stack())}
		}
	}()
	return f()
}
