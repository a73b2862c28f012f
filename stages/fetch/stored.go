package fetch

import (
	"context"
	"errors"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// maxStoredHeader is the longest stored header value, in bytes.
const maxStoredHeader = 4096

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
		URL: blocks.Truncate(raw.URL, maxStoredHeader), ContentType: blocks.Truncate(raw.ContentType, maxStoredHeader),
		ContentLanguage: blocks.Truncate(raw.ContentLanguage, maxStoredHeader), Packed: packed,
	}
}

// RawOf returns b, a stored body, as a reader gets it.
func RawOf(b *flow.Body) (pipeline.Raw, error) {
	content, err := flow.UnpackText(b.Packed)
	return pipeline.Raw{URL: b.URL, ContentType: b.ContentType, ContentLanguage: b.ContentLanguage, Body: []byte(content)}, err
}

// openStored returns b, a stored body, with its reader of today.
func openStored(b *flow.Body, readers *Readers) (source, error) {
	raw, err := RawOf(b)
	if err != nil {
		return source{}, err
	}
	return readers.open(raw)
}

// ReadAgain returns the text of view in raw, a stored body, as a check would read it.
func ReadAgain(ctx context.Context, raw pipeline.Raw, view pipeline.View, readers *Readers) (string, error) {
	s, err := readers.open(raw)
	if err != nil {
		return "", err
	}
	t, _, err := s.text(ctx, view)
	return t.Content, err
}

// rebase returns the text of view in an earlier body of the page by the present rules, or why there is none.
func rebase(ctx context.Context, earlier func() (source, error), view pipeline.View) *flow.Rebased {
	t, by := pipeline.Text{}, ""
	s, err := earlier()
	if err == nil {
		t, by, err = s.text(ctx, view)
	}
	if err != nil {
		reason := "it is damaged"
		if f, ok := errors.AsType[*pipeline.FetchError](err); ok {
			reason = f.Reason
		}
		return &flow.Rebased{Extractor: by, Failed: "the page as it was cannot be read by the rules of today: " + blocks.Truncate(reason, maxTitle)}
	}
	return &flow.Rebased{TextHash: text.Hash(t.Content), Title: t.Title, Extractor: by, Packed: flow.PackText(t.Content, t.Keys...)}
}
