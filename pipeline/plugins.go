package pipeline

import (
	"context"
	"errors"
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

// Classes of failed checks, as users see them.
const (
	FailDNS          = "dns"
	FailRefused      = "refused"
	FailTLS          = "tls"
	FailStatus       = "status"
	FailTimeout      = "timeout"
	FailAddress      = "address" // the address guard said no
	FailNetwork      = "network" // any other failure to talk to the host
	FailRedirect     = "redirect"
	FailType         = "unsupported_type"
	FailUnreadable   = "unreadable"
	FailTooLarge     = "too_large"
	FailBusy         = "busy" // 429, or 503 with Retry-After
	FailSelectorGone = "selector_gone"
	FailEmpty        = "empty"
	FailURL          = "url"
)

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

// MaxPushed is the size of the largest page that can be pushed, in bytes, as it comes and in
// UTF-8.
const MaxPushed = 2 * MaxText

// Pushed is a page, or a text, that somebody hands over: nothing is fetched for it.
type Pushed struct {
	// URL names the page: an absolute URL with a host, which need not be there. Required.
	URL string
	// ContentType is what Body is, such as "text/html; charset=utf-8". Required with Body.
	ContentType string
	// ContentLanguage is the language of Body if it is known, as in HTTP's header.
	ContentLanguage string
	// Body is the page as it was read, at most MaxPushed bytes.
	Body []byte
	// Text is plain text in UTF-8, instead of Body; ContentType does not count then.
	Text string
	// ID names what is handed over: a page whose ID is among the last 64 that came for
	// its URL is dropped. Empty: it is no repeat of any other.
	ID string
	// Time is when the page was read; zero: when it is taken in.
	Time time.Time
	// Header holds further attributes, by lower-case name, such as HeaderTrace.
	Header map[string]string
}

// Emit hands p over. When it returns nil p is durable and the Router's: that is the
// acknowledgement. ErrUnusable means that p is taken too, but its URL can never be that of a
// page: it goes to the dead letters, and is not to be handed over again. After any other error p
// is to be handed over again. Emit blocks while there is no room, until ctx is done. A page that
// cannot be read is taken without an error: it goes to the dead letters as well. Emit
// is safe for concurrent use; pages of one URL are taken in the order of the calls, if each
// waits for the one before.
type Emit func(ctx context.Context, p Pushed) error

// ErrUnusable says that a page that was handed over has a URL that can never be one: it is not
// absolute, is longer than pageurl.MaxLength, or holds a user name or password.
var ErrUnusable = errors.New("the page can never be used; it is among the dead letters, and need not be handed over again")

// Source brings pages from elsewhere.
type Source interface {
	// Run hands over what it gets until ctx is done, and returns soon after that. What emit
	// did not take with nil must come again, at the latest after a restart of the process, and
	// best under the same Pushed.ID. An error says that the source can do no more for now, as
	// when what it reads from is away: Run is then called again after a pause. Nil ends it.
	Run(ctx context.Context, emit Emit) error
}

// SourceFunc is a function that is a Source.
type SourceFunc func(ctx context.Context, emit Emit) error

// Run calls f.
func (f SourceFunc) Run(ctx context.Context, emit Emit) error { return f(ctx, emit) }
