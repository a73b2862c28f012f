package vokter

import (
	"time"

	"github.com/vokter/vokter/pipeline"
)

// States of pages, documents, subscriptions and receivers in a Listing.
const (
	StateActive       = "active"
	StateFailing      = "failing"
	StateLimited      = "limited"
	StateExpired      = "expired"
	StateSelectorGone = "selector_gone"
)

// ListFilter selects what List returns. Empty fields select all.
type ListFilter struct {
	URL    string `json:"url,omitempty"`
	Client string `json:"client,omitempty"`
	// Sinks also selects the sinks of the Router to which nothing was ever to be delivered,
	// where URL and Client are empty.
	Sinks bool `json:"sinks,omitempty"`
}

// Listing is what a data directory holds: pages by URL, receivers by sink and target.
type Listing struct {
	Pages     []PageInfo     `json:"pages"`
	Receivers []ReceiverInfo `json:"receivers"`
}

// PageInfo is one page.
type PageInfo struct {
	URL string `json:"url"`
	// State is StateActive, StateFailing where the last check failed, or StateExpired where
	// nobody is told anything any more. Reason says why it is not active, Since since when.
	State  string    `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Keep lists the origins that keep the page without subscriptions.
	Keep []string `json:"keep,omitempty"`
	// Pushed says that nobody asks for checks: the page is only pushed. Checks is 0 then, and
	// LastCheck is when it was last pushed.
	Pushed bool `json:"pushed,omitempty"`
	// Checks is the number of the last check that was made, LastCheck when that was,
	// NextCheck when the next one is due: zero where it is under way or due at once, or
	// never comes.
	Checks    uint64    `json:"checks"`
	LastCheck time.Time `json:"last_check,omitzero"`
	NextCheck time.Time `json:"next_check,omitzero"`
	// Failures is how many checks in a row failed, of those that count towards expiry.
	Failures      int                `json:"failures"`
	Documents     []DocumentInfo     `json:"documents"`
	Subscriptions []SubscriptionInfo `json:"subscriptions"`
}

// DocumentInfo is one document of a page.
type DocumentInfo struct {
	ID       string        `json:"id"`
	View     pipeline.View `json:"view,omitzero"`
	State    string        `json:"state"`   // StateActive or StateSelectorGone
	Version  uint64        `json:"version"` // the one that stands, 0 for none
	Time     time.Time     `json:"time,omitzero"`
	Title    string        `json:"title,omitempty"`
	Language string        `json:"language,omitempty"`
	TextHash string        `json:"text_hash,omitempty"`
}

// SubscriptionInfo is one subscription of a page.
type SubscriptionInfo struct {
	pipeline.Subscription
	Document string `json:"document"`
	Origin   string `json:"origin"`
	// State is StateActive or StateExpired; Reason and Since say why it expired, and when.
	State  string    `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// From is the version that stood when it began: it hears what comes later.
	From uint64 `json:"from"`
}

// ReceiverInfo is one receiver that delivery knows, or that a subscription names.
type ReceiverInfo struct {
	Sink   string `json:"sink"`
	Target string `json:"target,omitempty"`
	// State is StateActive, StateFailing where the last attempt failed, StateLimited where the
	// receiver put it off since it was sent too much, or StateExpired; Reason says why it is not
	// active.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Since is when it began to fail, or expired, Failures how many attempts failed since, NextAttempt
	// when the next one is due.
	Since       time.Time `json:"since,omitzero"`
	Failures    int       `json:"failures"`
	NextAttempt time.Time `json:"next_attempt,omitzero"`
	// Collected is how many notifications wait in digests, the first of which ends at NextDigest.
	Collected  int       `json:"collected,omitempty"`
	NextDigest time.Time `json:"next_digest,omitzero"`
	// Pending is how many other notifications wait, Dead how many dead letters there are.
	Pending int `json:"pending"`
	Dead    int `json:"dead"`
	// Used says that there was anything to deliver, as far as that is remembered.
	Used bool `json:"used"`
	// LastSuccess is when it took something last, LastFailure when an attempt failed last, and
	// LastError why. They are remembered for a year.
	LastSuccess time.Time `json:"last_success,omitzero"`
	LastFailure time.Time `json:"last_failure,omitzero"`
	LastError   string    `json:"last_error,omitempty"`
}

// ExplainFilter selects what Explain looks at. Empty fields select all.
type ExplainFilter struct {
	Client  string `json:"client,omitempty"`
	Keyword string `json:"keyword,omitempty"`
}

// Explanation says what the last checks of a page found and what followed from it.
type Explanation struct {
	Page PageInfo `json:"page"`
	// Checks are the last ones, the newest first.
	Checks []CheckInfo `json:"checks"`
	// Changes are the last ones, the newest first.
	Changes []ChangeInfo `json:"changes"`
	// Keywords says of each keyword what became of it in the last change of its document;
	// Omitted says how many more there are than are explained at once.
	Keywords []KeywordInfo `json:"keywords"`
	Omitted  int           `json:"keywords_omitted,omitempty"`
}

// CheckInfo is one check.
type CheckInfo struct {
	Check uint64    `json:"check"`
	Time  time.Time `json:"time"`
	// Result is pipeline.OutcomeRead, OutcomeUnchanged or OutcomeFailed. Class and Reason
	// say why it failed; Reason also why a text that was read is no version.
	Result string `json:"result"`
	Class  string `json:"class,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Offline says that the failure does not count, since nothing could be reached.
	Offline bool  `json:"offline,omitempty"`
	Status  int   `json:"status,omitempty"`
	Bytes   int64 `json:"bytes,omitempty"`
	// Took is how long the fetch lasted.
	Took pipeline.Duration `json:"took,omitempty"`
	// Versions are those that the check made, by document.
	Versions map[string]uint64 `json:"versions,omitempty"`
}

// ChangeInfo is one change of a document, or the expiry of its page, and whom it told.
type ChangeInfo struct {
	ID       string    `json:"id"`
	Document string    `json:"document"`
	Version  uint64    `json:"version"`
	Check    uint64    `json:"check"`
	Time     time.Time `json:"time"`
	// Expired says why the page was given up, where this is no change: ID, Document, Version
	// and Check are zero then.
	Expired string `json:"expired,omitempty"`
	// Matches are the notifications that it made; Omitted says how many more there were
	// than are kept.
	Matches []MatchInfo `json:"matches"`
	Omitted int         `json:"omitted,omitempty"`
}

// MatchInfo is one notification.
type MatchInfo struct {
	Notification string   `json:"notification"` // its ID
	Client       string   `json:"client"`
	Keywords     []string `json:"keywords"`
	Sink         string   `json:"sink"`
	Target       string   `json:"target,omitempty"`
	// Delivery is one of the Delivery constants; Attempts how many were made; Reason why
	// the last one failed; Time when it was delivered or given up, or is tried next, or when
	// its digest ends.
	Delivery string    `json:"delivery"`
	Attempts int       `json:"attempts"`
	Reason   string    `json:"reason,omitempty"`
	Time     time.Time `json:"delivery_time,omitzero"`
	// Digest is the ID of the digest that it was told in, or is to be.
	Digest string `json:"digest,omitempty"`
}

// What became of a notification.
const (
	DeliveryPending   = "pending"
	DeliveryDigest    = "digest" // waits in a digest
	DeliveryDelivered = "delivered"
	DeliveryDead      = "dead"      // given up; replay brings it back
	DeliveryDropped   = "dropped"   // its subscription was cancelled first
	DeliveryForgotten = "forgotten" // too long ago to be known
	DeliveryElsewhere = "elsewhere" // another process delivers it
)

// KeywordInfo says what became of one keyword of a subscription.
type KeywordInfo struct {
	Client   string `json:"client"`
	Document string `json:"document"`
	Keyword  string `json:"keyword"`
	// Version is the one that stands, which the last change made; 0 if there is none.
	Version uint64 `json:"version"`
	Matched bool   `json:"matched"`
	// Why says in words why it did not match: a sentence about the keyword, without a full
	// stop.
	Why string `json:"why,omitempty"`
}
