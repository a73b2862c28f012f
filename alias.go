package vokter

import (
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/index"
)

// The words of package pipeline that a program which embeds a Router needs.
type (
	// Subscription says what a client wants to hear about a document.
	Subscription = pipeline.Subscription
	// Digest says for how long the notifications of a subscription are collected.
	Digest = pipeline.Digest
	// Duration is a time.Duration whose JSON is text, such as "10m0s".
	Duration = pipeline.Duration
	// View is everything that alters a document's text.
	View = pipeline.View
	// Selector is a CSS selector or a range between two.
	Selector = pipeline.Selector
	// Event is what happened to a keyword.
	Event = pipeline.Event
	// Notification is all that one change says to one subscription at one receiver.
	Notification = pipeline.Notification
	// Diff is one keyword found in one difference.
	Diff = pipeline.Diff
	// Health is a change in how a page, a receiver or the process does.
	Health = pipeline.Health
	// Change carries all differences between two versions of a document.
	Change = pipeline.Change
	// Sink hands notifications to receivers, by its method
	//
	//	Deliver(ctx context.Context, n Notification) error
	//
	// It returns nil only when the receiver has n, which is then never delivered again. After
	// an error n comes again later, under the same ID, and before what is newer; what is marked
	// with [Permanent], [Refused], [Gone] or [RetryAfter] does otherwise. Deliver returns soon
	// after ctx is done, is safe for concurrent use, and its errors hold no secret. Methods
	// that a Sink may have besides are those of package pipeline, and [Config].
	Sink = pipeline.Sink
	// SinkFunc is a function that is a Sink.
	SinkFunc = pipeline.SinkFunc
	// Source brings pages from elsewhere, by its method
	//
	//	Run(ctx context.Context, emit Emit) error
	//
	// which hands over what it gets until ctx is done, and returns soon after that. What emit
	// did not take with nil must come again, at the latest after a restart of the process, and
	// best under the same Pushed.ID. An error says that the source can do no more for now: Run
	// is then called again after a pause. Nil ends it.
	Source = pipeline.Source
	// SourceFunc is a function that is a Source.
	SourceFunc = pipeline.SourceFunc
	// Emit hands over a page:
	//
	//	func(ctx context.Context, p Pushed) error
	//
	// When it returns nil p is durable and the Router's: that is the acknowledgement. Otherwise
	// p is to be handed over again. It blocks while there is no room, until ctx is done. It
	// takes also what cannot be read, such as a page without a URL: that goes to the dead
	// letters and is logged. It is safe for concurrent use; pages of one URL are taken in the
	// order of the calls, if each waits for the one before.
	Emit = pipeline.Emit
	// Pushed is a page that is handed over. It needs a URL, which names it and need not be
	// there, and either Text, which is plain, or Body, in UTF-8 or in what its ContentType
	// says. One whose ID came before for its URL is dropped.
	Pushed = pipeline.Pushed
	// Fetcher gets pages of some URL schemes.
	Fetcher = pipeline.Fetcher
	// FetchRequest says what a Fetcher is to get.
	FetchRequest = pipeline.FetchRequest
	// Response is a page as a Fetcher got it.
	Response = pipeline.Response
	// FetchError is a failed check, of a Fetcher or a Reader.
	FetchError = pipeline.FetchError
	// Reader extracts the text of a document.
	Reader = pipeline.Reader
	// Raw is a page to be read.
	Raw = pipeline.Raw
	// Text is what a Reader extracts.
	Text = pipeline.Text
	// Stemmer reduces the words of a language to their stems.
	Stemmer = pipeline.Stemmer
	// Processor handles one message at a time per key.
	Processor = pipeline.Processor
	// DeadFilter selects dead letters; empty fields select all notifications.
	DeadFilter = pipeline.DeadFilter
	// DeadLetter is what was given up, and why.
	DeadLetter = pipeline.DeadLetter
	// Refusal says why a command was not carried out; its Code is one of the Code constants.
	Refusal = index.Refusal
	// Middleware wraps a stage's Processor.
	Middleware = pipeline.Middleware
)

// Never is the interval of what is not fetched, since its pages are pushed.
const Never = pipeline.Never

// The events.
const (
	Added   = pipeline.Added
	Removed = pipeline.Removed
)

// How the words of a keyword are matched, in Subscription.Match.
const (
	MatchPhrase = pipeline.MatchPhrase // next to each other, in this order
	MatchTerms  = pipeline.MatchTerms  // all in the same difference, in any order
)

// Statuses and types of a Notification.
const (
	StatusOK               = pipeline.StatusOK
	StatusTimeout          = pipeline.StatusTimeout
	NotificationType       = pipeline.NotificationType
	NotificationTypeHealth = pipeline.NotificationTypeHealth // only to the sinks of Config.Health
	NotificationTypeDigest = pipeline.NotificationTypeDigest // what several changes say, told as one
)

// ParseDigest reads a Digest without Max: a duration such as 1h, or a cron line such as
// "0 9 * * 1-5 Europe/Berlin".
func ParseDigest(s string) (Digest, error) { return pipeline.ParseDigest(s) }

// Permanent marks an error of a Sink as one that trying again cannot mend: the notification
// goes to the dead letters at once. Permanent(nil) is nil.
func Permanent(err error) error { return pipeline.Permanent(err) }

// Refused marks an error of a Sink as its receiver's refusal of this one notification: it is
// tried three times, goes to the dead letters, and the next one follows. Refused(nil) is nil.
func Refused(err error) error { return pipeline.Refused(err) }

// Limited marks an error of a Sink as its receiver's wish to be asked again after d, because
// it was sent too much, as with the HTTP status 429. That is no failure: the schedule of retries
// does not move. A d of 0 means that the receiver did not say when. Limited(nil, d) is nil.
func Limited(err error, d time.Duration) error { return pipeline.Limited(err, d) }

// TellAtOnce marks an error of a Sink as a failure that somebody has to mend, such as a token
// that the receiver refuses: the health event follows the first attempt instead of the third.
// The notification waits and is tried again as after any failure. TellAtOnce(nil) is nil.
func TellAtOnce(err error) error { return pipeline.TellAtOnce(err) }

// Gone marks an error of a Sink as its receiver's word that it does not exist any more: it is
// expired at once, and subscriptions that have no other sink end. Gone(nil) is nil.
func Gone(err error) error { return pipeline.Gone(err) }

// RetryAfter marks an error of a Sink as one after which at least d must pass before the next
// attempt. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error { return pipeline.RetryAfter(err, d) }

// Codes of refused commands.
const (
	CodeURL      = index.CodeURL      // the URL is invalid
	CodeKeywords = index.CodeKeywords // no valid keyword
	CodeEvents   = index.CodeEvents   // no event
	CodeConflict = index.CodeConflict // the pair of document and client has a subscription
	CodeFormat   = index.CodeFormat   // another field is invalid
	CodeNotFound = index.CodeNotFound // there is no such subscription
)
