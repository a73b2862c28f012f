package pipeline

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Fetcher fetches pages of some URL schemes. It is safe for concurrent use. pipelinetest.TestFetcher
// tests one.
type Fetcher interface {
	// Schemes returns the URL schemes that it fetches, in lower case.
	Schemes() []string
	// Fetch fetches r.URL. It returns a *FetchError to give the failure a class; any other error
	// counts as FailNetwork. The caller closes Response.Body.
	Fetch(ctx context.Context, r FetchRequest) (Response, error)
}

// FetchRequest asks a Fetcher for one page.
type FetchRequest struct {
	// URL is the page to fetch.
	URL string
	// ETag and LastModified are those of the last Response, for a conditional request. They are
	// empty if there was none.
	ETag         string
	LastModified string
	// Access is that of the last Response. A Fetcher whose settings for the page have another one by
	// now ignores ETag and LastModified.
	Access string
	// Page is the page for which URL is fetched, where URL is not the page itself but robots.txt of
	// its host. The settings for the page, such as a proxy, are used then. Empty means URL.
	Page string
	// Redirect is asked before a redirect to url is followed. Its error ends the fetch and is
	// returned. Nil permits all redirects that the Fetcher follows.
	Redirect func(ctx context.Context, url string) error
	// MaxBody is the size of the largest decoded body that is wanted, in bytes, where that is more
	// than the Fetcher returns otherwise. 0 means that no more is wanted.
	MaxBody int64
	// Next is the Fetcher that would be asked if there were not this one: the one before it in
	// vokter.Config.Fetchers that has the scheme of URL, or else the built-in one. Nil where there is
	// none. The fetch stage sets it. A Fetcher hands over the pages to it that it does not fetch itself.
	Next Fetcher
}

// Response is a fetched page.
type Response struct {
	// URL is the URL of the page after redirects.
	URL string
	// Status is the HTTP status: 200, or 304 where the page is not modified. Any other status is
	// returned as a *FetchError.
	Status int
	// Header has the headers of the answer.
	Header http.Header
	// Access identifies the settings of the Fetcher with which the page was fetched, such as headers
	// or a login, without revealing them. It is stored. Empty where there are none.
	Access string
	// Screenshot is a picture of the page as PNG, JPEG or WebP, of at most MaxScreenshot bytes. It is
	// stored with the versions that the page makes. Empty where there is none.
	Screenshot []byte
	// Body is the decompressed body, never nil. A Read beyond the size limit fails with a
	// *FetchError of class FailTooLarge.
	Body io.ReadCloser
}

// MaxScreenshot is how large a Response.Screenshot can be, in bytes. A larger one is not stored.
const MaxScreenshot = 256 << 10

// Raw is a page as a Reader gets it.
type Raw struct {
	// URL is where the body came from, after redirects.
	URL string
	// ContentType is the header's value, with its parameters.
	ContentType string
	// ContentLanguage is the header's value.
	ContentLanguage string
	// Body is the page. A page of text (HTML, XML, JSON, plain) is in UTF-8, whatever encoding the
	// page or ContentType declares. The Reader must not change it.
	Body []byte
}

// MediaType returns the media type of ContentType, without parameters, or "" if it has none.
func (r Raw) MediaType() string {
	mediaType, _, _ := mime.ParseMediaType(r.ContentType)
	return mediaType
}

// FetchError says why a check of a page failed.
type FetchError struct {
	// Class is one of the Fail constants.
	Class string
	// Reason is in words for the user.
	Reason string
	// Status is the HTTP status, 0 if there was none.
	Status int
	// RetryAfter is how long the host asked to wait before the next request, 0 if it did not.
	RetryAfter time.Duration
	// Err is the cause; it may be nil.
	Err error
}

func (e *FetchError) Error() string { return e.Reason }

func (e *FetchError) Unwrap() error { return e.Err }

// Classes of failed checks. Users see them.
const (
	FailDNS          = "dns"
	FailRefused      = "refused"
	FailTLS          = "tls"
	FailStatus       = "status"
	FailTimeout      = "timeout"
	FailAddress      = "address" // the address is not allowed, such as a private one
	FailNetwork      = "network" // any other failure of the connection
	FailRedirect     = "redirect"
	FailType         = "unsupported_type" // no Reader reads its content type
	FailUnreadable   = "unreadable"
	FailTooLarge     = "too_large"
	FailBusy         = "busy"          // 429, or 503 with Retry-After
	FailSelectorGone = "selector_gone" // View.Select matches nothing
	FailMissing      = "missing"       // the file does not exist
	FailEmpty        = "empty"         // the page has no text
	FailReplaced     = "page_replaced" // the page looks replaced; see View.Replaced
	FailURL          = "url"           // the URL is invalid
	FailRobots       = "robots"        // robots.txt of the host forbids to fetch it
	FailLogin        = "login"         // the login form of the website did not open a session
)

// Reader extracts the text of a document. It is safe for concurrent use.
type Reader interface {
	// ContentTypes returns the media types that it reads, such as "text/html", without parameters.
	ContentTypes() []string
	// Read returns the text of view. It applies View.Select and View.Remove; its caller applies
	// View.Ignore and View.Confirm. A page that cannot be read gives a *FetchError of class
	// FailUnreadable, FailTooLarge, or FailSelectorGone where View.Select matches nothing.
	Read(ctx context.Context, raw Raw, view View) (Text, error)
}

// Text is what a Reader extracts.
type Text struct {
	// Content is the visible text in valid UTF-8: blocks, each ended by BlockEnd, with
	// white space collapsed and other control characters dropped. A block is a paragraph,
	// heading, cell, list item or line; the page's title is the first, unless View.Select is
	// given. Items stand between ItemStart and ItemEnd: list items, table rows, articles, cards, the
	// entries of a feed. They may be nested.
	Content string
	// Keys identify the items: Keys[i] is that of the item with the i-th ItemStart in Content, the zero Key
	// where it has none. It is nil where no item has one. A key is no text: an item whose key alone changes is
	// no news.
	Keys []Key
	// Title is that of the page; empty if it has none.
	Title string
	// Language is the language that the page declares, a BCP 47 tag, or empty.
	Language string
	// Items are the items of a feed (RSS, Atom, JSON Feed), or with View.Items the elements of an array
	// in JSON, in the order of Content. They are not nil for a feed or array without items, and nil for
	// a page that is neither.
	Items []FeedItem
	// Empty says that the page is there and holds nothing, such as an array without elements or a calendar
	// without events. Another page without text is a failed check.
	Empty bool
	// Passed says, in a sentence for each kind, what of the page was passed over because it is not valid, such
	// as "2 control characters were dropped, the first in line 3". The verb explain shows it with the check.
	Passed []string
}

// FeedItem is one item of a feed.
type FeedItem struct {
	// ID is what the feed identifies the item by, such as its guid, id or link; empty if it has
	// none.
	ID string
	// Content[Start:End] is its text, from an ItemStart to the ItemEnd that belongs to it.
	Start, End int
}

// Marks in Text.Content.
const (
	BlockEnd  = '\n'
	ItemStart = '\x02'
	ItemEnd   = '\x03'
)

// Key identifies an item among the items of its list. The zero Key is none.
type Key uint32

// NewKey returns the key of an item that is known by id, such as the target of its link, an id or a GUID. Keys of
// two lists say nothing of each other: list is what the items of one have in common, in every version of the
// document, such as the name under which they stand. An item without id has no key.
func NewKey(list, id string) Key {
	if id == "" {
		return 0
	}
	return KeyOf(xxhash.Sum64String(list), xxhash.Sum64String(id))
}

// KeyOf is NewKey for the hashes of both.
func KeyOf(list, id uint64) Key { return Key(list)<<keyBits | max(1, Key(id)&(1<<keyBits-1)) }

const keyBits = 24

// List returns what the keys of one list have in common.
func (k Key) List() uint8 { return uint8(k >> keyBits) }

// Stemmer reduces the words of a language to their stems. It is safe for concurrent use.
type Stemmer interface {
	// Language is a BCP 47 primary language subtag such as "en".
	Language() string
	// Stem returns the stem of word, which is not empty, in lower case and in Unicode's normal
	// form C, and consists of letters, marks and apostrophes. Equal words must have equal stems
	// at any time. An empty stem stands for the word itself.
	Stem(word string) string
}

// MaxPushed is the size of the largest page that can be pushed, in bytes, both as it is pushed and
// converted to UTF-8.
const MaxPushed = 2 * MaxText

// Pushed is a page, or a text, that a Source or a program pushes instead of having it fetched.
type Pushed struct {
	// URL names the page. It is absolute, with a host, which need not exist. Required.
	URL string
	// ContentType is the media type of Body, such as "text/html; charset=utf-8". Required with Body.
	ContentType string
	// ContentLanguage is the language of Body as in the HTTP header, empty if it is not known.
	ContentLanguage string
	// Body is the page, at most MaxPushed bytes.
	Body []byte
	// Text is plain text in UTF-8, instead of Body. ContentType is ignored then.
	Text string
	// ID identifies this push: a page whose ID is among the last 64 IDs of its URL is dropped as a
	// repeat. A page with an empty ID is never a repeat.
	ID string
	// Time is when the page was read; the zero time means now.
	Time time.Time
	// Header holds further attributes by lower-case name, such as "traceparent".
	Header map[string]string
}

// Emit pushes p into the pipeline. Nil is the acknowledgement: p is durable. ErrUnusable means that
// the URL of p is invalid: p is a dead letter, and must not be pushed again. After any other error
// the Source pushes p again. A page that cannot be read becomes a dead letter without an error.
// Emit blocks while the pipeline is full, until ctx is done. It is safe for concurrent use. To
// keep pages of one URL in order, wait for each call before the next.
type Emit func(ctx context.Context, p Pushed) error

// ErrUnusable is what Emit returns for a page whose URL is invalid: it is not absolute, is longer
// than pageurl.MaxLength, or holds a user name or password.
var ErrUnusable = errors.New("the page can never be used; it is among the dead letters, and need not be handed over again")

// Source pushes pages into the pipeline, for example from a queue.
type Source interface {
	// Run calls emit for each page until ctx is done, and returns soon after that. It pushes a page
	// again for which emit returned an error other than ErrUnusable, at the latest after a restart
	// of the process, and under the same Pushed.ID if it can. Where Run returns an error, for
	// example because its queue cannot be reached, it is called again after a pause. Where it
	// returns nil, it is not called again.
	Run(ctx context.Context, emit Emit) error
}

// SourceFunc is a function that is a Source.
type SourceFunc func(ctx context.Context, emit Emit) error

// Run calls f.
func (f SourceFunc) Run(ctx context.Context, emit Emit) error { return f(ctx, emit) }
