package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
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

// compileIgnore returns the regular expressions of View.Ignore.
func compileIgnore(patterns []string) ([]*regexp.Regexp, error) {
	res, err := pipeline.View{Ignore: patterns}.Patterns()
	if err != nil {
		return nil, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: err.Error()}
	}
	return res, nil
}

// blankIgnored blanks what matches one of res in the blocks of content, one block at a time, and drops the
// blocks that are blank then. It returns ctx's error if that is done first.
func blankIgnored(ctx context.Context, content string, keys []pipeline.Key, res []*regexp.Regexp) (string, []pipeline.Key, error) {
	if len(res) == 0 {
		return content, keys, nil
	}
	var err error
	var b blocks.Builder
	for content != "" {
		end := strings.IndexAny(content, blocks.Borders)
		if end < 0 {
			end = len(content)
		}
		block := content[:end]
		for _, re := range res {
			if block, err = selector.Blank(ctx, re, block); err != nil {
				return "", nil, err
			}
		}
		b.Text([]byte(block))
		if end == len(content) {
			break
		}
		b.Border(content[end])
		if content[end] == pipeline.ItemStart && len(keys) > 0 {
			b.SetKey(keys[0])
			keys = keys[1:]
		}
		content = content[end+1:]
	}
	blanked := b.Content()
	return blanked, b.Keys(), nil
}

// Ignored returns content, a text of a document, with what matches one of the regular expressions blanked, as
// View.Ignore does.
func Ignored(ctx context.Context, content string, patterns ...string) (string, error) {
	res, err := compileIgnore(patterns)
	if err != nil {
		return "", err
	}
	blanked, _, err := blankIgnored(ctx, content, nil, res)
	return blanked, err
}

// maxItems is how many items a feed may have.
const maxItems = 5000

// onlyItems returns of t, a feed, the items alone, without what matches one of the regular
// expressions in ignored. The IDs of its items are their keys: see flow.Outcome. A feed without items
// has its title as text.
func onlyItems(ctx context.Context, t pipeline.Text, ignored []*regexp.Regexp) (pipeline.Text, error) {
	switch {
	case t.Items == nil:
		return t, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "the page is no RSS, Atom or JSON feed and no array in JSON, so it has no items; name the address of the feed, select the array of a JSON document, or watch the page without items"}
	case len(t.Items) > maxItems:
		return t, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the page has more than 5,000 items"}
	}
	var content strings.Builder
	var keys []pipeline.Key
	before, at := 0, 0 // the items before t.Content[at], which may be nested
	out := make([]pipeline.FeedItem, 0, len(t.Items))
	taken := make(map[string]bool, len(t.Items))
	for _, item := range t.Items {
		before += countItems(t.Content[at:item.Start])
		at = item.Start
		body, bodyKeys, err := blankIgnored(ctx, strings.ToValidUTF8(t.Content[item.Start:item.End], "\ufffd"), t.Keys[min(before, len(t.Keys)):], ignored)
		if err != nil {
			return t, err
		}
		id := "id " + item.ID
		if item.ID == "" {
			id = "text " + body
		}
		key := itemKey(id)
		if taken[key] { // feeds with mistakes give several items one identity
			key = itemKey(id + "\n" + body)
		}
		if taken[key] || blocks.Blank(body) {
			continue
		}
		taken[key] = true
		start := content.Len()
		content.WriteString(body)
		bodyKeys = append(bodyKeys, make([]pipeline.Key, max(countItems(body)-len(bodyKeys), 0))...)
		keys = append(keys, bodyKeys[:countItems(body)]...)
		out = append(out, pipeline.FeedItem{ID: key, Start: start, End: content.Len()})
	}
	t.Content, t.Keys, t.Items = content.String(), keys, out
	if len(out) == 0 && t.Title != "" {
		t.Content = blocks.Line(t.Title) + string(pipeline.BlockEnd)
	}
	return t, nil
}

// countItems returns how many items begin in content.
func countItems(content string) int { return strings.Count(content, string(pipeline.ItemStart)) }

// itemKey returns the key of an identity.
func itemKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}
