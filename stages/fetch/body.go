package fetch

import (
	"context"
	"errors"
	"mime"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// keep returns raw as it is kept by the page's owner, or nil where it is too large.
func keep(raw pipeline.Raw) *flow.Body {
	packed, ok := flow.PackBody(raw.Body)
	if !ok {
		return nil
	}
	return &flow.Body{
		URL: cut(raw.URL, maxKept), ContentType: cut(raw.ContentType, maxKept), ContentLanguage: cut(raw.ContentLanguage, maxKept),
		Packed: packed,
	}
}

// maxKept is how much of what describes a body is kept, in bytes.
const maxKept = 4096

// earlierBody is a body that was kept, to be read by today's rules. The nil one is none.
type earlierBody struct {
	raw    pipeline.Raw
	reader pipeline.Reader
	err    error // why it cannot be read
}

// earlier unpacks b, which may be nil, and finds its reader.
func earlier(b *flow.Body, readers *Readers) *earlierBody {
	if b == nil {
		return nil
	}
	content, err := flow.UnpackText(b.Packed)
	if err != nil {
		return &earlierBody{err: err}
	}
	mediaType, _, _ := mime.ParseMediaType(b.ContentType)
	reader, ok := readers.forType(mediaType)
	if !ok {
		return &earlierBody{err: &pipeline.FetchError{Class: pipeline.FailType, Reason: "there is no reader for it any more"}}
	}
	return &earlierBody{reader: reader, raw: pipeline.Raw{
		URL: b.URL, ContentType: b.ContentType, ContentLanguage: b.ContentLanguage, Body: []byte(content),
	}}
}

// rebase returns the text of view in e, or why there is none; nil without e.
func (e *earlierBody) rebase(ctx context.Context, view pipeline.View) *flow.Rebased {
	if e == nil {
		return nil
	}
	t, by, err := pipeline.Text{}, "", e.err
	if err == nil {
		t, by, err = readText(ctx, e.raw, e.reader, view)
	}
	if err != nil {
		reason := "it is damaged"
		if f, ok := errors.AsType[*pipeline.FetchError](err); ok {
			reason = f.Reason
		}
		return &flow.Rebased{Extractor: by, Failed: "the page as it was cannot be read by the rules of today: " + cut(reason, maxTitle)}
	}
	return &flow.Rebased{TextHash: text.Hash(t.Content), Title: t.Title, Extractor: by, Packed: flow.PackText(t.Content)}
}
