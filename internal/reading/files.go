package reading

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/fetch"
	"github.com/vokter/vokter/stages/fetch/readers"
	"github.com/vokter/vokter/stages/fetch/readers/markdown"
	"github.com/vokter/vokter/stages/index"
)

// File is a body of a page.
type File struct {
	// Name is for errors.
	Name string
	// ContentType is its media type. If it is empty, the body tells its type.
	ContentType string
	Body        []byte
	// Time is when it was found.
	Time time.Time
}

// Compare returns the change from old to new, two bodies of one page, in the document of view. ok is
// false where no word differs. page is the URL of the page.
func Compare(ctx context.Context, page string, old, new File, view pipeline.View) (c flow.Change, ok bool, err error) {
	before, was, err := readBody(ctx, old.ContentType, old.Body, view)
	if err != nil {
		return c, false, fmt.Errorf("%s cannot be read: %w", old.Name, err)
	}
	after, is, err := readBody(ctx, new.ContentType, new.Body, view)
	if err != nil {
		return c, false, fmt.Errorf("%s cannot be read: %w", new.Name, err)
	}
	keys := flow.UnpackKeys(before.Packed)
	if view.Items {
		if was, keys, ok = index.ItemsBase(before, after); !ok {
			return c, false, nil
		}
	}
	language, _ := text.LanguageChoice{Page: after.Language, Text: text.Detect(is)}.Language()
	c, ok = diff.ChangeOf(flow.Snapshot{
		Page: page, Document: flow.DocumentID(page, view), N: 2, Previous: 1, Time: new.Time,
		Language: language, Title: after.Title, ContentType: after.ContentType, Value: view.Value != nil, Old: was, New: is, OldKeys: keys, NewKeys: flow.UnpackKeys(after.Packed),
	})
	return c, ok, nil
}

// readBody reads a body as a fetched page is read, and returns the outcome and its text. Where
// contentType is empty, the body tells its type.
func readBody(ctx context.Context, contentType string, body []byte, view pipeline.View) (flow.Outcome, string, error) {
	header := http.Header{}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	outcomes := fetch.Read(ctx, flow.Request{Documents: []flow.RequestDocument{{View: view}}},
		fetch.Page{Status: http.StatusOK, Header: header, Body: body}, fetch.NewReaders(append(readers.Builtin(), markdown.New())...))
	if len(outcomes) == 0 {
		return flow.Outcome{}, "", context.Cause(ctx)
	}
	o := outcomes[0]
	if o.Kind != flow.OutcomeRead {
		return o, "", errors.New(o.Reason)
	}
	content, err := flow.UnpackText(o.Packed)
	return o, content, err
}
