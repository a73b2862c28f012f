package pipeline

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Fetcher gets pages of some URL schemes. It is safe for concurrent use.
type Fetcher interface {
	// Schemes lists the URL schemes it serves, in lower case.
	Schemes() []string
	// Fetch gets what r names. It returns a *FetchError where the failure has a class; any
	// other error is of class FailNetwork. The caller closes Response.Body.
	Fetch(ctx context.Context, r FetchRequest) (Response, error)
}

// FetchRequest is one GET.
type FetchRequest struct {
	URL string
	// ETag and LastModified are validators to send, if not empty.
	ETag         string
	LastModified string
}

// Response is a page as it came.
type Response struct {
	// URL is where it came from after redirects.
	URL string
	// Status is the HTTP status: 200, or 304 where the validators held. Anything else is a
	// *FetchError.
	Status int
	Header http.Header
	// Body is the decoded (decompressed) body. It is bounded: it fails with a *FetchError
	// of class FailTooLarge at the limit. Never nil.
	Body io.ReadCloser
}

// Raw is a page to be read.
type Raw struct {
	URL string
	// ContentType is the header's value, with its parameters.
	ContentType string
	// ContentLanguage is the header's value.
	ContentLanguage string
	// Body is the page. That of text (HTML, XML, JSON, plain) is in UTF-8, whatever the page
	// or ContentType declares; it must not be written to.
	Body []byte
}

// Reader extracts the text of a document. It is safe for concurrent use.
type Reader interface {
	// ContentTypes lists the media types it reads ("text/html"), without parameters.
	ContentTypes() []string
	// Read returns the text of view, but leaves View.Ignore and View.Confirm to its
	// caller. Input that cannot be read gives a *FetchError: FailUnreadable, FailTooLarge,
	// or FailSelectorGone where view.Select matches nothing.
	Read(ctx context.Context, raw Raw, view View) (Text, error)
}

// Text is what a Reader extracts.
type Text struct {
	// Content is the visible text in valid UTF-8: blocks, each ended by BlockEnd, with
	// white space collapsed and other control characters dropped. A block is a paragraph,
	// heading, cell, list item or line; the page's title is the first, unless View.Select is
	// given. List items and table rows stand between ItemStart and ItemEnd.
	Content string
	Title   string
	// Language is what the page declares, a BCP 47 tag, or empty.
	Language string
}

// Marks within Text.Content.
const (
	BlockEnd  = '\n'
	ItemStart = '\x02'
	ItemEnd   = '\x03'
)

// Stemmer reduces the words of a language to their stems. It is safe for concurrent use.
type Stemmer interface {
	// Language is a BCP 47 primary language subtag such as "en".
	Language() string
	// Stem returns the stem of word, which is in lower case.
	Stem(word string) string
}

// Sink hands notifications to receivers.
type Sink interface {
	// Deliver returns nil only when the receiver has n. Its error's class decides what
	// happens next: see Permanent, RetryAfter and Gone. It returns soon after ctx is done,
	// is safe for concurrent use, and its errors hold no secret.
	Deliver(ctx context.Context, n Notification) error
}

// A Sink may have more methods:
//
//   - Rate() (perSecond float64, burst int) says how many attempts a second its protocol
//     bears, and how many at once after a pause; perSecond is above 0 and burst at least 1.
//     An attempt waits until its sink may be used again. LimitRate gives a sink a rate.
//   - Batch() (notifications, atOnce int) says how many notifications that wait for one
//     receiver an attempt may deliver, and how many of them at the same time, both at least
//     1. Each is a call of Deliver; those of one document come one after the other. The
//     attempt is known to have ended, and so is stored, as a whole: after a crash, or where
//     one of those at the same time fails, the others are delivered again, under the same
//     IDs. It is for sinks whose receivers recognise those. A sink with a rate has no batches.
//   - Timeout() time.Duration says after how long an attempt is ended: DefaultTimeout where it
//     does not say. LimitTime gives a sink a timeout.
//   - Check(ctx) error asks the receiver whether notifications would arrive as they should: see
//     Checker.
//
// A Sink that wraps another one has the method Unwrap() Sink: what it does not say itself, the
// other one says.

// SinkFunc is a function that is a Sink.
type SinkFunc func(ctx context.Context, n Notification) error

// Deliver calls f.
func (f SinkFunc) Deliver(ctx context.Context, n Notification) error { return f(ctx, n) }

// FetchError is a failed check: its class, and the reason in words for the user.
type FetchError struct {
	Class  string
	Reason string
	// Status is the HTTP status, 0 if there was none.
	Status int
	// RetryAfter is for how long the host wishes to be left alone, 0 if it does not.
	RetryAfter time.Duration
	Err        error
}

func (e *FetchError) Error() string { return e.Reason }
func (e *FetchError) Unwrap() error { return e.Err }
