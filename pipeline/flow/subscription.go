package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// OriginAPI is the origin of subscriptions that were made one by one while the program
// ran. Lists of other origins take over what they name of it.
const OriginAPI = "api"

// SubscribeCommand asks index to add a subscription. It is refused with a conflict
// where the pair of document and client has one.
type SubscribeCommand struct {
	Subscription pipeline.Subscription `json:"subscription"`
	Origin       string                `json:"origin"`
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
	Keep         bool              `json:"keep,omitempty"`
	KeepInterval pipeline.Duration `json:"keep_interval,omitempty"`
	// KeepOnly leaves all subscriptions as they are; Subscriptions is empty then.
	KeepOnly      bool                    `json:"keep_only,omitempty"`
	Subscriptions []pipeline.Subscription `json:"subscriptions"`
	// Resume also begins anew what expired and is listed unchanged.
	Resume bool `json:"resume,omitempty"`
}

// ResumeCommand asks index to begin anew the expired subscriptions of the page of URL, each
// with a fresh baseline: those of Client, or all where it is empty. With Receiver set,
// only those that expired with that receiver.
type ResumeCommand struct {
	URL      string `json:"url"`
	Client   string `json:"client,omitempty"`
	Receiver string `json:"receiver,omitempty"` // the name of a sink
}

// RetryCommand asks delivery to try now what waits for the receiver that is the key of its
// message, whatever its schedule says; with Page, a canonical URL, only where something about
// that page waits.
type RetryCommand struct {
	Page string `json:"page,omitempty"`
}

// ExpireCommand tells index that Receiver (the name of a sink) expired: subscriptions of the page
// of URL that have no other receiver end, listed as expired for Reason.
type ExpireCommand struct {
	URL      string `json:"url"`
	Receiver string `json:"receiver"`
	Reason   string `json:"reason"`
}

// Codes of refused commands. Programs in other languages read them (Code in the schema of
// health events), so that each keeps its number; there is no 2.
const (
	CodeURL      = 1 // the document's URL is invalid
	CodeKeywords = 3 // no keyword, or one that is invalid
	CodeEvents   = 4 // no event that exists
	CodeConflict = 5 // the pair of document and client has a subscription
	CodeFormat   = 6 // anything else is wrong with the command
	CodeNotFound = 7 // there is nothing to cancel or resume
)

// Refusal is why index did not do what a command asked for.
type Refusal struct {
	// Code is one of the Code constants.
	Code int
	// Message says it in words for the user.
	Message string
}

func (r *Refusal) Error() string { return r.Message }

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
	Origin       string                `json:"origin"`
	Subscription pipeline.Subscription `json:"subscription"`
	// Former are whom earlier records of the pair may still be telling something, beside
	// the receivers of Subscription under Incarnation: a cancel takes that back too.
	Former []Former `json:"former,omitempty"`
	// End says why a record with an Until ended: one of the End constants, or empty where
	// another record of the same subscription replaced it.
	End string `json:"end,omitempty"`
}

// Forever is the Until of a subscription that was not ended. It is exact in JSON readers
// that keep numbers as doubles.
const Forever = uint64(1)<<53 - 1

// Former is a receiver of an earlier record, and the incarnation that the record had.
type Former struct {
	Receiver     pipeline.Receiver `json:"receiver"`
	Subscription string            `json:"subscription"`
}

// Why a subscription ended.
const (
	EndCancelled = "cancelled" // nothing that is still to be told about it is told
	EndExpired   = "expired"   // its page was given up: its client gets a timeout notification
	EndReceiver  = "receiver"  // all its receivers expired
)

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

// Sweep asks each lane to look for the pages that Receiver means something to, and to tell
// them what became of it. One is published into every lane, see EmitAll.
type Sweep struct {
	// Event is the ID of the health event that says so, Time when it happened.
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	// Receiver is the name of a sink.
	Receiver string `json:"receiver"`
	// Resume begins anew what ended with the receiver, which answers again; otherwise what
	// has no other receiver ends for Reason.
	Resume bool   `json:"resume,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Message returns s as a message on TopicSweeps, without a key.
func (s Sweep) Message() Message {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("pipeline: sweep: %v", err)) // every field is encodable
	}
	return Message{ID: DeriveID("sweep", s.Event), Topic: TopicSweeps, Type: TypeSweep, Time: s.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// SweepFrom is the inverse of Sweep.Message.
func SweepFrom(m Message) (Sweep, error) {
	var s Sweep
	if err := json.Unmarshal(m.Body, &s); err != nil {
		return s, failure.Permanent(fmt.Errorf("sweep %s: %w", m.ID, err))
	}
	return s, nil
}
