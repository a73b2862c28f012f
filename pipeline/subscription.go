package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"golang.org/x/text/language"
)

// Event is what happened to a keyword.
type Event string

// The events.
const (
	Added   Event = "added"
	Removed Event = "removed"
)

// How the words of a keyword are matched.
const (
	MatchPhrase = "phrase" // next to each other, in this order
	MatchTerms  = "terms"  // all in the same difference, in any order
)

// Defaults and bounds of a subscription.
const (
	DefaultInterval      = Duration(10 * time.Minute)
	DefaultMinInterval   = 10 * time.Second
	DefaultSnippetOffset = 50
	MaxSnippetOffset     = 500
	MaxKeywordTokens     = 16
	MaxKeywords          = 10_000
	MaxKeywordLength     = 1000 // characters
	MaxClientLength      = 1000 // characters
)

// Subscription says what a client wants to hear about a document. It is unique per
// (document, client).
type Subscription struct {
	// URL is the page, as the client spells it; notifications echo this spelling.
	URL string `json:"url"`
	// Client is who it is for. Default "default".
	Client string `json:"client"`
	// Keywords are words or phrases of at most MaxKeywordTokens tokens and MaxKeywordLength
	// characters: at least one, and at most MaxKeywords.
	Keywords []string `json:"keywords"`
	// Events are the events to report; none means both.
	Events []Event `json:"events,omitempty"`
	// Interval is how often to check; 0 means DefaultInterval, Never that this subscription
	// asks for no check: it hears what is pushed, and what others have checked.
	Interval Duration `json:"interval,omitempty"`
	// Stem matches lexical variants; it implies IgnoreCase.
	Stem bool `json:"stem,omitempty"`
	// FilterStopwords ignores words of no significance, in keywords and text.
	FilterStopwords  bool `json:"filter_stopwords,omitempty"`
	IgnoreCase       bool `json:"ignore_case,omitempty"`
	IgnoreDiacritics bool `json:"ignore_diacritics,omitempty"`
	// Match is MatchPhrase or MatchTerms; empty means MatchPhrase, or MatchTerms where
	// stop words are filtered.
	Match string `json:"match,omitempty"`
	// Moved also reports keywords that only changed place.
	Moved bool `json:"moved,omitempty"`
	// Language is a BCP 47 tag that overrides detection.
	Language string `json:"language,omitempty"`
	// SnippetOffset is the context on each side in characters, at most MaxSnippetOffset;
	// nil means DefaultSnippetOffset.
	SnippetOffset *int `json:"snippet_offset,omitempty"`
	// Sinks names the sinks to deliver to, at least one.
	Sinks []string `json:"sinks"`
	// Digest collects what is to be told, to tell it as one; nil means that each change is
	// told at once. That its page was given up is always told at once.
	Digest *Digest `json:"digest,omitempty"`
	// View is the document within the page.
	View
}

// WithDefaults returns s with every default filled in.
func (s Subscription) WithDefaults() Subscription {
	if s.Client == "" {
		s.Client = "default"
	}
	if len(s.Events) == 0 {
		s.Events = []Event{Added, Removed}
	}
	if s.Interval == 0 {
		s.Interval = DefaultInterval
	}
	if s.Match == "" {
		s.Match = MatchPhrase
		if s.FilterStopwords {
			s.Match = MatchTerms
		}
	}
	if s.Stem {
		s.IgnoreCase = true
	}
	if s.SnippetOffset == nil {
		n := DefaultSnippetOffset
		s.SnippetOffset = &n
	}
	return s
}

// FieldError says what is wrong with one field of a subscription. Field is the name
// in YAML and JSON.
type FieldError struct {
	Field  string
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// Validate returns all that is wrong with s, joined FieldErrors, or nil. The field of a value
// in a list has its index: keywords[0]. What needs tokens (a keyword without any, or with too
// many) is checked by text.ValidKeyword.
func (s Subscription) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &FieldError{field, fmt.Sprintf(format, args...)})
	}
	if err := CheckURL(s.URL); err != nil {
		bad("url", "%v", err)
	}
	if n := utf8.RuneCountInString(s.Client); n > MaxClientLength {
		bad("client", "a name of %d characters is too long; at most %d", n, MaxClientLength)
	}
	switch n := len(s.Keywords); {
	case n == 0:
		bad("keywords", "at least one keyword is needed")
	case n > MaxKeywords:
		bad("keywords", "%d keywords are too many; at most %d", n, MaxKeywords)
	}
	for i, k := range s.Keywords {
		if n := utf8.RuneCountInString(k); n > MaxKeywordLength {
			bad(fmt.Sprintf("keywords[%d]", i), "a keyword of %d characters is too long; at most %d", n, MaxKeywordLength)
		}
	}
	for i, e := range s.Events {
		if e != Added && e != Removed {
			bad(fmt.Sprintf("events[%d]", i), "%q is not an event; events are added and removed", string(e))
		}
	}
	if s.Interval < 0 && s.Interval != Never {
		bad("interval", "%v is negative; write a duration such as 10m, or never", s.Interval)
	}
	if s.Match != "" && s.Match != MatchPhrase && s.Match != MatchTerms {
		bad("match", "%q is neither phrase nor terms", s.Match)
	}
	if s.SnippetOffset != nil && (*s.SnippetOffset < 0 || *s.SnippetOffset > MaxSnippetOffset) {
		bad("snippet_offset", "%d is not between 0 and %d", *s.SnippetOffset, MaxSnippetOffset)
	}
	if len(s.Sinks) == 0 {
		bad("sinks", "at least one sink is needed")
	}
	if n := len(s.Ignore); n > MaxPatterns {
		bad("ignore", "%d regular expressions are too many; at most %d", n, MaxPatterns)
	}
	for i, re := range s.Ignore {
		if _, err := CompilePattern(re); err != nil {
			bad(fmt.Sprintf("ignore[%d]", i), "%v", err)
		}
	}
	if s.Language != "" {
		if _, err := language.Parse(s.Language); err != nil {
			bad("language", "%q is not a language tag; write one such as en or pt-BR", s.Language)
		}
	}
	if s.Digest != nil {
		if err := s.Digest.Validate(); err != nil {
			bad("digest", "%v", err)
		}
	}
	if s.Confirm < 0 {
		bad("confirm", "%d is not at least 1", s.Confirm)
	}
	return errors.Join(errs...)
}

// Wants reports whether s asks for e.
func (s Subscription) Wants(e Event) bool { return len(s.Events) == 0 || slices.Contains(s.Events, e) }

// OriginAPI is the origin of subscriptions that were made one by one while the program
// ran. Lists of other origins take over what they name of it.
const OriginAPI = "api"

// SubscribeCommand asks index to add a subscription. It is refused with a conflict
// where the pair of document and client has one.
type SubscribeCommand struct {
	Subscription Subscription `json:"subscription"`
	Origin       string       `json:"origin"`
}

// CancelCommand asks index to end the subscriptions of Client on the page of URL.
type CancelCommand struct {
	URL    string `json:"url"`
	Client string `json:"client"`
}

// ApplyCommand makes Subscriptions all that Origin (and, where Client is set, that
// client) wants of the page of URL: what is new is added, what differs is changed,
// what is missing is cancelled.
type ApplyCommand struct {
	URL    string `json:"url"`
	Origin string `json:"origin"`
	Client string `json:"client,omitempty"`
	// Keep keeps the page without subscriptions. It is fetched for that, unless KeepInterval
	// is Never.
	Keep         bool     `json:"keep,omitempty"`
	KeepInterval Duration `json:"keep_interval,omitempty"`
	// KeepOnly leaves all subscriptions as they are; Subscriptions is empty then.
	KeepOnly      bool           `json:"keep_only,omitempty"`
	Subscriptions []Subscription `json:"subscriptions"`
	// Resume also begins anew what expired and is listed unchanged.
	Resume bool `json:"resume,omitempty"`
}

// ResumeCommand asks index to begin anew the expired subscriptions of the page of URL, each
// with a fresh baseline: those of Client, or all where it is empty. With Receiver set,
// only those that expired with that receiver.
type ResumeCommand struct {
	URL      string `json:"url"`
	Client   string `json:"client,omitempty"`
	Receiver string `json:"receiver,omitempty"` // a Receiver.ID
}

// ExpireCommand tells index that Receiver (a Receiver.ID) expired: subscriptions of the page
// of URL that have no other receiver end, listed as expired for Reason.
type ExpireCommand struct {
	URL      string `json:"url"`
	Receiver string `json:"receiver"`
	Reason   string `json:"reason"`
}

// Stamped is a subscription as index stamped it: it hears change n of its document
// if From < n <= Until.
type Stamped struct {
	// Page, Document: whom it watches. PageIncarnation: which life of the page.
	Page            string `json:"page"`
	PageIncarnation string `json:"page_incarnation"`
	Document        string `json:"document"`
	// Incarnation is which life of the pair (document, client) this is.
	Incarnation string `json:"incarnation"`
	// Stamp orders all subscribes, changes and cancels of one incarnation of a page: 1, 2, 3 ...
	Stamp uint64 `json:"stamp"`
	// Since is the stamp of the record that Stamped ends or stands for; together with
	// Incarnation it names the record.
	Since uint64 `json:"since"`
	From  uint64 `json:"from"`
	Until uint64 `json:"until"` // Forever while it stands
	// Origin is who made it: yaml, watch, api, go.
	Origin       string       `json:"origin"`
	Subscription Subscription `json:"subscription"`
	// Former are whom earlier records of the pair may still be telling something, beside
	// the receivers of Subscription under Incarnation: a cancel takes that back too.
	Former []Former `json:"former,omitempty"`
	// End says why a record with an Until ended: one of the End constants, or empty where
	// another record of the same subscription replaced it.
	End string `json:"end,omitempty"`
}

// Former is a receiver of an earlier record, and the incarnation that the record had.
type Former struct {
	Receiver     Receiver `json:"receiver"`
	Subscription string   `json:"subscription"`
}

// Why a subscription ended.
const (
	EndCancelled = "cancelled" // nothing that is still to be told about it is told
	EndExpired   = "expired"   // its page was given up: its client gets a timeout notification
	EndReceiver  = "receiver"  // all its receivers expired
)

// Forever is the Until of a subscription that was not ended. It is exact in JSON readers
// that keep numbers as doubles.
const Forever = uint64(1)<<53 - 1

// Ended says that Incarnation of Page ended, after all its changes.
type Ended struct {
	Page        string `json:"page"`
	Incarnation string `json:"incarnation"`
	// Stamp is the last stamp of the incarnation, 0 if the sender does not say: who
	// forgets the incarnation's subscriptions waits until it has applied that.
	Stamp uint64 `json:"stamp,omitempty"`
	// Expiry is set where the page was given up.
	Expiry *Expiry `json:"expiry,omitempty"`
	// Listed says that something of the page is listed as expired. Where it is not, nothing
	// is kept of the page; Incarnation is empty where it lived no more before that.
	Listed bool `json:"listed,omitempty"`
}

// Expiry says why a page was given up. Each of its clients gets one timeout notification.
type Expiry struct {
	Time time.Time `json:"time"` // of the last check
	// Class and Reason are of the last failure, Failures how many there were in a row.
	Class    string `json:"class"`
	Reason   string `json:"reason"`
	Failures int    `json:"failures"`
	// Lineage is the store in which it happened.
	Lineage string `json:"lineage,omitempty"`
}
