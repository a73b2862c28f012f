package fetch

import (
	"context"
	"errors"
	"mime"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// storableBody returns raw in the form in which the owner of the page stores it, or nil if it is too large.
// Packed is its packed body, or nil if it was not packed yet.
func storableBody(raw pipeline.Raw, packed []byte) *flow.Body {
	ok := len(packed) <= flow.MaxStoredBody
	if packed == nil {
		packed, ok = flow.PackBody(raw.Body)
	}
	if !ok {
		return nil
	}
	return &flow.Body{
		URL: truncate(raw.URL, maxStoredHeader), ContentType: truncate(raw.ContentType, maxStoredHeader), ContentLanguage: truncate(raw.ContentLanguage, maxStoredHeader),
		Packed: packed,
	}
}

// maxStoredHeader is the longest stored header value, in bytes.
const maxStoredHeader = 4096

// earlierBody is a stored body that is read again by the present rules. nil: there is none.
type earlierBody struct {
	raw    pipeline.Raw
	reader pipeline.Reader
	err    error // why it cannot be read
}

// openEarlierBody unpacks b, which may be nil, and finds its reader.
func openEarlierBody(b *flow.Body, readers *Readers) *earlierBody {
	if b == nil {
		return nil
	}
	raw, err := RawOf(b)
	if err != nil {
		return &earlierBody{err: err}
	}
	reader, err := readers.forStored(raw)
	return &earlierBody{raw, reader, err}
}

// RawOf returns b, a stored body, as a reader gets it.
func RawOf(b *flow.Body) (pipeline.Raw, error) {
	content, err := flow.UnpackText(b.Packed)
	return pipeline.Raw{URL: b.URL, ContentType: b.ContentType, ContentLanguage: b.ContentLanguage, Body: []byte(content)}, err
}

// forStored returns the reader of raw, which was stored.
func (r *Readers) forStored(raw pipeline.Raw) (pipeline.Reader, error) {
	mediaType, _, _ := mime.ParseMediaType(raw.ContentType)
	reader, ok := r.forType(mediaType)
	if !ok {
		return nil, &pipeline.FetchError{Class: pipeline.FailType, Reason: "there is no reader for it any more"}
	}
	return reader.Reader, nil
}

// ReadAgain returns the text of view in raw, a stored body, as a check would read it.
func ReadAgain(ctx context.Context, raw pipeline.Raw, view pipeline.View, readers *Readers) (string, error) {
	reader, err := readers.forStored(raw)
	if err != nil {
		return "", err
	}
	t, _, err := readText(ctx, raw, reader, view)
	return t.Content, err
}

// rebase returns the text of view in e, or why there is none. It returns nil if e is nil.
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
		return &flow.Rebased{Extractor: by, Failed: "the page as it was cannot be read by the rules of today: " + truncate(reason, maxTitle)}
	}
	return &flow.Rebased{TextHash: text.Hash(t.Content), Title: t.Title, Extractor: by, Packed: flow.PackText(t.Content, t.Keys...)}
}
