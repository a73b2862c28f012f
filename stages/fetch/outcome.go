package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/fetch/charset"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/html"
)

const (
	// minTrustedAge is how long ago a page must have been modified for Last-Modified to be used as a
	// validator: the header has whole seconds, and clocks differ.
	minTrustedAge = time.Minute
	// maxPassed is how many sentences of Text.Passed are passed on, each of at most maxTitle bytes.
	maxPassed = 10
	// maxTitle is how much of a title is passed on, in bytes.
	maxTitle = 512
	// maxValidator is how long a validator may be, in bytes.
	maxValidator = 1024
)

// Page is a fetched page.
type Page struct {
	// URL is where it came from after redirects.
	URL string
	// Status is 200, or 304 where the request's validators held.
	Status int
	Header http.Header
	// Access is Response.Access.
	Access string
	// Screenshot is Response.Screenshot.
	Screenshot []byte
	// Body is the decompressed body; empty with 304.
	Body []byte
	// Time is when the fetch began, and Took how long it lasted.
	Time time.Time
	Took time.Duration
}

// Read returns the outcomes of p, the answer to req: one for the page if it did not change or cannot be
// read, otherwise one for each of its documents. It depends on its arguments alone, and never panics,
// whatever a reader does. It returns nil if ctx ends first.
func Read(ctx context.Context, req flow.Request, p Page, readers *Readers) []flow.Outcome {
	base, known := baseOutcome(req, p)
	if known {
		return []flow.Outcome{base}
	}
	return readDocuments(ctx, base, req, p, readers)
}

// baseOutcome returns the outcome of p without its documents. known is true if the body did not
// change. Then the outcome is complete.
func baseOutcome(req flow.Request, p Page) (o flow.Outcome, known bool) {
	o = flow.Outcome{
		Page: req.Page, Incarnation: req.Incarnation, Check: req.Check, Nonce: req.Nonce,
		Time: p.Time, Took: p.Took, Status: p.Status, Bytes: int64(len(p.Body)), Access: p.Access,
	}
	if p.Status == http.StatusNotModified {
		return notModifiedOutcome(o, req, p), true
	}
	sum := sha256.Sum256(p.Body)
	o.BodyHash = hex.EncodeToString(sum[:])
	o.ETag, o.LastModified = validators(p.Header)
	if o.BodyHash != req.BodyHash {
		return o, false
	}
	o.Kind, o.Against = flow.OutcomeUnchanged, req.BodyHash
	return o, true
}

// readDocuments returns the outcomes of a page whose body changed.
func readDocuments(ctx context.Context, base flow.Outcome, req flow.Request, p Page, readers *Readers) []flow.Outcome {
	f, err := findFormat(req, p, readers)
	if err != nil {
		return []flow.Outcome{unreadableOutcome(base, err)}
	}
	return readInFormat(ctx, base, req, p, f, readers)
}

// readInFormat is read for a page in format f.
func readInFormat(ctx context.Context, base flow.Outcome, req flow.Request, p Page, f pageFormat, readers *Readers) []flow.Outcome {
	raw, err := f.decodePage(p)
	if err != nil {
		return []flow.Outcome{unreadableOutcome(base, err)}
	}
	parts := readParts(ctx, base, req, raw, f.reader, readers)
	for i := range parts {
		if parts[i].Kind == flow.OutcomeRead {
			parts[i].Screenshot = p.Screenshot
		}
	}
	return parts
}

// unreadableOutcome is the outcome of a page that nothing can read. Its body is not remembered, so that the
// next check tries again.
func unreadableOutcome(o flow.Outcome, err error) flow.Outcome {
	o.BodyHash, o.ETag, o.LastModified = "", "", ""
	setFailed(&o, err)
	return o
}

// readParts returns one outcome for each document of the page.
func readParts(ctx context.Context, base flow.Outcome, req flow.Request, raw pipeline.Raw, reader *readerEntry, readers *Readers) []flow.Outcome {
	base.Parts = len(req.Documents)
	parts := make([]flow.Outcome, 0, len(req.Documents))
	failed, wanted := false, false // of a part, and the body
	old := openEarlierBody(req.Rebase, readers)
	whole := sync.OnceValue(func() pipeline.Text {
		t, _, _ := readText(ctx, raw, reader.Reader, pipeline.View{})
		return t
	})
	sitemap := sync.OnceValues(func() (*flow.Links, error) { return sitemapOf(ctx, raw) })
	for i, doc := range req.Documents {
		o := base
		o.Part, o.Document = i, doc.ID
		if doc.View.Sitemap {
			l, err := sitemap()
			if readSitemap(&o, doc, raw, l, err); err != nil {
				failed = true
			}
			if ctx.Err() != nil {
				return nil
			}
			parts = append(parts, o)
			continue
		}
		err := readPart(ctx, &o, raw, reader.Reader, doc, whole)
		switch {
		case err != nil:
			setFailed(&o, err)
			failed = true
		case o.Kind == flow.OutcomeRead:
			wanted = true
			o.Rebased = old.rebase(ctx, doc.View)
		default:
			wanted = wanted || req.KeepBody
		}
		if ctx.Err() != nil {
			return nil
		}
		parts = append(parts, o)
	}
	last := &parts[len(parts)-1]
	if wanted {
		last.Body = storableBody(raw, req.Packed)
	}
	switch {
	case !req.Links:
	case wantsSitemap(req):
		last.Links, _ = sitemap() // none if it cannot be read: what is known stands
	default:
		last.Links = linksOf(ctx, raw)
	}
	if failed {
		// Without the hash and validators of the body the next check reads the page again. Otherwise
		// it would find the page unchanged, and hide that a document still fails.
		for i := range parts {
			parts[i].BodyHash, parts[i].ETag, parts[i].LastModified = "", "", ""
		}
	}
	return parts
}

// notModifiedOutcome returns the outcome of a 304. Validators that the answer lacks stay as they were.
func notModifiedOutcome(o flow.Outcome, req flow.Request, p Page) flow.Outcome {
	if req.BodyHash == "" || (req.ETag == "" && req.LastModified == "") {
		setFailed(&o, &pipeline.FetchError{Class: pipeline.FailStatus, Status: p.Status, Reason: "HTTP status 304 Not Modified, though nothing was asked for conditionally"})
		return o
	}
	o.Kind, o.Against, o.BodyHash = flow.OutcomeUnchanged, req.BodyHash, req.BodyHash
	o.ETag, o.LastModified = req.ETag, req.LastModified
	if tag := p.Header.Get("ETag"); tag != "" && len(tag) <= maxValidator {
		o.ETag = tag
	}
	return o
}

// validators returns the validators for the next request: the ETag, and Last-Modified if it can be
// trusted.
func validators(h http.Header) (etag, lastModified string) {
	if etag = h.Get("ETag"); len(etag) > maxValidator {
		etag = ""
	}
	lastModified = h.Get("Last-Modified")
	modified, err := http.ParseTime(lastModified)
	if err != nil {
		return etag, ""
	}
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil || sent.Sub(modified) < minTrustedAge {
		return etag, ""
	}
	return etag, lastModified
}

// pageFormat is the content type of a page and what reads it.
type pageFormat struct {
	contentType, mediaType string
	reader                 *readerEntry
}

// findFormat returns the format of p, or why there is no reader for it. A sitemap needs none.
func findFormat(req flow.Request, p Page, readers *Readers) (f pageFormat, err error) {
	f.contentType, f.mediaType = contentType(p.Header, p.Body)
	if isText(f.mediaType) && html.Gzipped(p.Body) && !wantsSitemap(req) {
		return f, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "the page is compressed with gzip more than once"}
	}
	f.reader, err = readers.find(f.mediaType)
	if err != nil && wantsSitemap(req) {
		f.reader, err = sitemapOnlyEntry(err), nil
	}
	return f, err
}

// decodePage returns p as its reader gets it: text is decoded.
func (f pageFormat) decodePage(p Page) (pipeline.Raw, error) {
	raw := pipeline.Raw{URL: p.URL, ContentType: f.contentType, ContentLanguage: p.Header.Get("Content-Language"), Body: p.Body}
	if !isText(f.mediaType) || html.Gzipped(p.Body) {
		return raw, nil
	}
	err := recoverPanic(func() error { raw.Body = charset.Decode(p.Body, f.contentType); return nil })
	return raw, err
}

// Extractor may be implemented by a pipeline.Reader. It names the rules by which the reader makes text,
// and changes with them. Without it the name is the media type.
type Extractor interface{ Extractor() string }

// readPart reads one document into o; whole returns the text of the whole page.
func readPart(ctx context.Context, o *flow.Outcome, raw pipeline.Raw, reader pipeline.Reader, doc flow.RequestDocument, whole func() pipeline.Text) error {
	t, by, err := readText(ctx, raw, reader, doc.View)
	o.Extractor, o.Passed = by, t.Passed
	if err != nil {
		return err
	}
	if t.Content == "" && !t.Empty && doc.TextHash != "" && doc.TextHash != text.Hash("") {
		return noText // a page whose text is made by scripts, for example: the last version stays
	}
	o.Title, o.Language, o.TextHash = t.Title, t.Language, text.Hash(t.Content)
	if doc.View.Items {
		for _, item := range t.Items {
			o.Items = append(o.Items, item.ID)
		}
	}
	o.ContentType, _, _ = mime.ParseMediaType(raw.ContentType)
	if o.TextHash == doc.TextHash {
		o.Kind, o.Against = flow.OutcomeUnchanged, doc.TextHash
		return nil
	}
	o.Kind, o.Text, o.Packed = flow.OutcomeRead, t.Content, flow.PackText(t.Content, t.Keys...)
	if o.Language == "" && len(doc.View.Select) > 0 && text.Detect(t.Content) == "" {
		// A line such as "Closed" is in the language of its page.
		page := whole()
		o.Language, o.PageLanguage = page.Language, text.Detect(page.Content)
	}
	return nil
}

// readText reads one document of raw, and returns the name of the extractor. The text may be empty: where the page
// holds nothing, where what is selected is there and has no text, and where the document is expected to be absent.
func readText(ctx context.Context, raw pipeline.Raw, reader pipeline.Reader, view pipeline.View) (t pipeline.Text, by string, err error) {
	t, by, err = readPresent(ctx, raw, reader, view)
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok && view.Expect == pipeline.ExpectAbsent && (e.Class == pipeline.FailSelectorGone || e.Class == pipeline.FailEmpty) {
		return pipeline.Text{Empty: true}, by, nil
	}
	return t, by, err
}

// noText is why a page without text is a failed check.
var noText = &pipeline.FetchError{Class: pipeline.FailEmpty, Reason: "there is no text on the page"}

// readPresent is readText without View.Expect. What a page strikes out is no value, unless there is no other.
func readPresent(ctx context.Context, raw pipeline.Raw, reader pipeline.Reader, view pipeline.View) (t pipeline.Text, by string, err error) {
	if v := view.Value; v != nil && v.Offer == "" && !v.Text() && strikesOut(raw) {
		valid := view
		valid.Remove = append(slices.Clip(view.Remove), pipeline.Selector{CSS: struckOut})
		if t, by, err = readView(ctx, raw, reader, valid); err == nil {
			return t, by, nil
		}
	}
	return readView(ctx, raw, reader, view)
}

// readView reads what a view selects.
func readView(ctx context.Context, raw pipeline.Raw, reader pipeline.Reader, view pipeline.View) (t pipeline.Text, by string, err error) {
	if len(bytes.TrimSpace(raw.Body)) == 0 {
		return t, "", &pipeline.FetchError{Class: pipeline.FailEmpty, Reason: "the page is empty"}
	}
	ignored, err := compileIgnore(view.Ignore)
	if err != nil {
		return t, "", err
	}
	err = recoverPanic(func() (err error) {
		by = extractorName(reader)
		if t, err = reader.Read(ctx, raw, view); err == nil && view.Items {
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
	t.Passed = t.Passed[:min(len(t.Passed), maxPassed)]
	for i, p := range t.Passed {
		t.Passed[i] = truncate(p, maxTitle)
	}
	if !view.Items {
		if t.Content, t.Keys, err = blankIgnored(ctx, strings.ToValidUTF8(t.Content, "\ufffd"), t.Keys, ignored); err != nil {
			return t, by, err
		}
	}
	if view.Value != nil {
		if err = recoverPanic(func() (err error) { t.Content, err = extractValue(ctx, *view.Value, raw, t); t.Keys = nil; return err }); err != nil {
			return t, by, err
		}
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
	t.Title, t.Language = truncate(t.Title, maxTitle), truncate(t.Language, maxTitle)
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

// Failed returns the outcome of a failed check of req's page, which lasted took.
func Failed(req flow.Request, at time.Time, took time.Duration, err error) flow.Outcome {
	o := flow.Outcome{Page: req.Page, Incarnation: req.Incarnation, Check: req.Check, Nonce: req.Nonce, Time: at, Took: took}
	setFailed(&o, err)
	return o
}

// setFailed makes o the outcome of a check that failed with err.
func setFailed(o *flow.Outcome, err error) {
	o.Kind = flow.OutcomeFailed
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok {
		o.Class, o.Reason = e.Class, truncate(e.Reason, maxTitle)
		o.RetryAfter = max(e.RetryAfter, 0)
		if e.Status != 0 {
			o.Status = e.Status
		}
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		o.Class, o.Reason = pipeline.FailTimeout, "the page did not come in time"
		return
	}
	o.Class, o.Reason = pipeline.FailNetwork, "the page could not be fetched"
}

// withoutPage returns the outcomes of req, whose check failed: failed, or one for each document where the page was
// not found and a document expects that.
func withoutPage(req flow.Request, failed flow.Outcome) []flow.Outcome {
	missing := failed.Status == http.StatusNotFound || failed.Status == http.StatusGone || failed.Class == pipeline.FailMissing
	absent := func(d flow.RequestDocument) bool { return d.View.Expect == pipeline.ExpectAbsent }
	if !missing || !slices.ContainsFunc(req.Documents, absent) {
		return []flow.Outcome{failed}
	}
	parts := make([]flow.Outcome, len(req.Documents))
	for i, d := range req.Documents {
		o := failed
		o.Parts, o.Part, o.Document = len(parts), i, d.ID
		if absent(d) {
			o.Kind, o.Class, o.Reason, o.RetryAfter = flow.OutcomeRead, "", "", 0
			if o.TextHash = text.Hash(""); o.TextHash == d.TextHash {
				o.Kind, o.Against = flow.OutcomeUnchanged, d.TextHash
			} else {
				o.Packed = flow.PackText("")
			}
		}
		parts[i] = o
	}
	return parts
}

// truncate returns the beginning of s, at most n bytes of valid UTF-8.
func truncate(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
