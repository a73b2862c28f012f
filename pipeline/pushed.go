package pipeline

import (
	"context"
	"errors"
	"time"
)

// MaxPushed is the size of the largest page that can be pushed, in bytes, as it comes and in
// UTF-8.
const MaxPushed = 2 * MaxText

// RememberedPushes is how many IDs of pushed pages are remembered for each URL.
const RememberedPushes = 64

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
	// ID names what is handed over: a page whose ID is among the last RememberedPushes that
	// came for its URL is dropped. Empty: it is no repeat of any other.
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
// absolute, is longer than MaxURL, or holds a user name or password.
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
