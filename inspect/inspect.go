// Package inspect says what a pipeline knows: its pages, subscriptions and receivers ([List]),
// what became of the last changes of a page ([Explain]), and what the pipeline did ([Tally]). It
// reads the committed state and changes nothing.
package inspect

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Store is the committed state of a pipeline. Every [flow.Transport] is one.
type Store interface {
	// State returns the committed state of a consumer group for one key.
	State(group, key string) flow.State
	// States iterates over the committed state of a consumer group, by key, in the lanes that
	// this process owns.
	States(group string) iter.Seq2[string, flow.State]
	// Owns reports whether this process owns the lane of key.
	Owns(key string) bool
}

// ErrElsewhere says that this process does not know the state of a page, because another process
// owns it, or none does at the moment. It occurs with a transport that processes share.
var ErrElsewhere = errors.New("another process owns it, or none does at the moment; ask the other processes")

// owned returns an error of ErrElsewhere for a page that this process does not own.
func owned(s Store, page string) error {
	if s.Owns(page) {
		return nil
	}
	return fmt.Errorf("%s: %w", page, ErrElsewhere)
}

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
	Pages     []Page     `json:"pages"`
	Receivers []Receiver `json:"receivers"`
}

// Page is one page.
type Page struct {
	URL string `json:"url"`
	// State is StateActive, StateFailing where the last check failed, or StateExpired where all
	// subscriptions ended. Reason says why it is not active, Since since when.
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
	Failures      int            `json:"failures"`
	Documents     []Document     `json:"documents"`
	Subscriptions []Subscription `json:"subscriptions"`
}

// Document is one document of a page.
type Document struct {
	ID       string        `json:"id"`
	View     pipeline.View `json:"view,omitzero"`
	State    string        `json:"state"`   // StateActive or StateSelectorGone
	Version  uint64        `json:"version"` // the one that stands, 0 for none
	Time     time.Time     `json:"time,omitzero"`
	Title    string        `json:"title,omitempty"`
	Language string        `json:"language,omitempty"`
	TextHash string        `json:"text_hash,omitempty"`
}

// Subscription is one subscription of a page.
type Subscription struct {
	pipeline.Subscription
	Document string `json:"document"`
	Origin   string `json:"origin"`
	// State is StateActive or StateExpired; Reason and Since say why it expired, and when.
	State  string    `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// From is the version that was current when it began: it gets later changes.
	From uint64 `json:"from"`
}

// Receiver is one receiver that delivery knows, or that a subscription names.
type Receiver struct {
	Sink string `json:"sink"`
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

// Explanation says what the last checks of a page found and which notifications followed.
type Explanation struct {
	Page Page `json:"page"`
	// Checks are the last ones, the newest first.
	Checks []Check `json:"checks"`
	// Changes are the last ones, the newest first.
	Changes []Change `json:"changes"`
	// Keywords says whether each keyword matched in the last change of its document, and if not,
	// why. Omitted is how many further keywords are not explained.
	Keywords []Keyword `json:"keywords"`
	Omitted  int       `json:"keywords_omitted,omitempty"`
}

// Check is one check.
type Check struct {
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

// Change is one change of a document, or the expiry of its page, and whom it told.
type Change struct {
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
	Matches []Match `json:"matches"`
	Omitted int     `json:"omitted,omitempty"`
}

// Match is one notification.
type Match struct {
	Notification string   `json:"notification"` // its ID
	Client       string   `json:"client"`
	Keywords     []string `json:"keywords"`
	Sink         string   `json:"sink"`
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

// Keyword says what became of one keyword of a subscription.
type Keyword struct {
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
