package fetch

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/fetch/charset"
)

// handlePushed passes a pushed page on to its owner, which knows the documents of the page and calls ReadPushed.
// A page without a reader is a permanent error.
func (s *Stage) handlePushed(tx flow.Tx, m flow.Message) error {
	p, err := flow.PushedFrom(m)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	if p.Body, err = decodePushed(p, s.cfg.Readers); err != nil {
		return failure.Permanent(fmt.Errorf("fetch: page %s: %w", m.ID, err))
	}
	if p.Time.IsZero() {
		p.Time = s.cfg.Now()
	}
	out, err := flow.TakenMessage(p)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	tx.Emit(out)
	return nil
}

// decodePushed returns the body of p in the form that a reader gets.
func decodePushed(p pipeline.Pushed, readers *Readers) ([]byte, error) {
	mediaType, params, err := mime.ParseMediaType(p.ContentType)
	if err != nil {
		return nil, err
	}
	if _, err := readers.find(mediaType); err != nil {
		return nil, err
	}
	if !isText(mediaType) {
		return p.Body, nil
	}
	if claimsUTF8(mediaType, params["charset"]) && !hasUTF16Mark(p.Body) && !utf8.Valid(p.Body) {
		return nil, fmt.Errorf("its body is not UTF-8, as its type %.80q says; name its charset", p.ContentType)
	}
	var body []byte
	if err := recoverPanic(func() error { body = charset.Decode(p.Body, p.ContentType); return nil }); err != nil {
		return nil, err
	}
	if len(body) > pipeline.MaxPushed {
		return nil, fmt.Errorf("the page has %d bytes in UTF-8; at most %d are taken", len(body), pipeline.MaxPushed)
	}
	return body, nil
}

// claimsUTF8 reports whether a page of mediaType with this charset parameter declares UTF-8. Plain text
// without a charset does.
func claimsUTF8(mediaType, charset string) bool {
	return strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8") || charset == "" && mediaType == "text/plain"
}

// hasUTF16Mark reports whether body begins with a byte order mark of UTF-16.
func hasUTF16Mark(body []byte) bool {
	return bytes.HasPrefix(body, boms[1]) || bytes.HasPrefix(body, boms[2])
}

// ReadPushed reads the documents of req in p, whose Body is as a reader gets it: one outcome for each, or one for the
// page if nothing can read it. It shares the limit of concurrent reads with fetched pages. It never panics, and returns
// nil if ctx ends first.
func (s *Stage) ReadPushed(ctx context.Context, req flow.Request, p pipeline.Pushed) []flow.Outcome {
	base := flow.Outcome{Page: req.Page, Incarnation: req.Incarnation, Time: p.Time, Bytes: int64(len(p.Body))}
	src, err := s.cfg.Readers.snapshot().open(pipeline.Raw{URL: p.URL, ContentType: p.ContentType, ContentLanguage: p.ContentLanguage, Body: p.Body})
	if err != nil { // its reader was taken away since p was taken
		return unreadable(base, err)
	}
	return s.readInTurn(ctx, base, src.reader, func(ctx context.Context) []flow.Outcome { return src.documents(ctx, base, req) })
}
