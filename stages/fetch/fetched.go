package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

const (
	// minTrustedAge is how long ago a page must have been modified for Last-Modified to be used as a
	// validator: the header has whole seconds, and clocks differ.
	minTrustedAge = time.Minute
	// maxTitle is how much of a title or a reason is passed on, in bytes.
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

// outcome returns the outcome of p, the answer to req, without its documents. If done is true, the outcome is complete:
// the body did not change.
func (p Page) outcome(req flow.Request) (o flow.Outcome, done bool) {
	o = flow.Outcome{
		Page: req.Page, Incarnation: req.Incarnation, Check: req.Check, Nonce: req.Nonce,
		Time: p.Time, Took: p.Took, Status: p.Status, Bytes: int64(len(p.Body)), Access: p.Access,
	}
	if p.Status == http.StatusNotModified {
		return notModified(o, req, p), true
	}
	sum := sha256.Sum256(p.Body)
	o.BodyHash = hex.EncodeToString(sum[:])
	o.ETag, o.LastModified = validators(p.Header)
	if o.BodyHash != req.BodyHash {
		o.Screenshot = p.Screenshot
		return o, false
	}
	o.Kind, o.Against = flow.OutcomeUnchanged, req.BodyHash
	return o, true
}

// notModified returns the outcome of a 304. Validators that the answer lacks stay as they were.
func notModified(o flow.Outcome, req flow.Request, p Page) flow.Outcome {
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
		o.Class, o.Reason = e.Class, blocks.Truncate(e.Reason, maxTitle)
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

// unreadable returns o as the outcome of a page that nothing can read. Its body is not remembered, so that the next check
// tries again.
func unreadable(o flow.Outcome, err error) []flow.Outcome {
	o.BodyHash, o.ETag, o.LastModified, o.Screenshot = "", "", "", nil
	setFailed(&o, err)
	return []flow.Outcome{o}
}
