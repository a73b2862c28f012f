package flow

import (
	"errors"
	"time"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline"
)

// OriginAPI is the origin of subscriptions that were made by single commands.
const OriginAPI = "api"

// SubscribeCommand adds a subscription. It is refused with CodeConflict if the document and client
// have one.
type SubscribeCommand struct {
	Subscription pipeline.Subscription `json:"subscription"`
	Origin       string                `json:"origin"`
}

// CancelCommand ends the subscriptions of Client on the page of URL.
type CancelCommand struct {
	URL    string `json:"url"`
	Client string `json:"client"`
	// Sink restricts the command to the subscriptions of OriginAPI that are delivered to this sink
	// alone.
	Sink string `json:"sink,omitempty"`
}

// ResumeCommand restarts expired and paused subscriptions of the page of URL, each with a new baseline: those
// of Client, or all if Client is empty. If Receiver is set, only those that expired with that
// receiver. If Due is set, only those whose pause has an end that has passed.
type ResumeCommand struct {
	URL      string `json:"url"`
	Client   string `json:"client,omitempty"`
	Receiver string `json:"receiver,omitempty"` // the name of a sink
	Due      bool   `json:"due,omitempty"`
}

// PauseCommand ends the subscriptions of Client on the page of URL until a ResumeCommand restarts
// them, or until the time Until if it is not zero. Meanwhile they are listed as paused, notify nobody,
// and cause no check. For those that are paused already it replaces the end of the pause.
type PauseCommand struct {
	URL    string    `json:"url"`
	Client string    `json:"client"`
	Until  time.Time `json:"until,omitzero"`
}

// RetryCommand attempts the pending notifications of a receiver now, instead of when its next
// retry is due. The key of its message is the receiver. If Page, a canonical URL, is set, it
// does so only if a notification about that page is pending.
type RetryCommand struct {
	Page string `json:"page,omitempty"`
}

// ExpireCommand ends the subscriptions of the page of URL whose only receiver is Receiver, the name
// of a sink, because it expired. They are listed as expired with Reason.
type ExpireCommand struct {
	URL      string `json:"url"`
	Receiver string `json:"receiver"`
	Reason   string `json:"reason"`
}

// Codes of refused commands. Programs in other languages read them in health events, so a code
// never changes its number.
const (
	CodeURL      = 1 // the document's URL is invalid
	CodeKeywords = 3 // no keyword, or one that is invalid
	CodeEvents   = 4 // an event that does not exist
	CodeConflict = 5 // the document and client have a subscription
	CodeFormat   = 6 // anything else is wrong with the command
	CodeNotFound = 7 // there is nothing to cancel or resume
)

// ErrBusy says that a command was not decided within 5 seconds. It may still be carried out.
var ErrBusy = errors.New("the command was not decided within 5 seconds; ask again")

// Refusal is the error of a command that was refused.
type Refusal struct {
	// Code is one of the Code constants.
	Code int
	// Message is the reason in words for the user.
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// Stamped is a subscription with the versions that it covers: it is notified of change n of its
// document if From < n <= Until.
type Stamped struct {
	// Page and Document are what it watches. A page whose last subscription ended, and that is watched
	// again, has a new PageIncarnation.
	Page            string `json:"page"`
	PageIncarnation string `json:"page_incarnation"`
	Document        string `json:"document"`
	// Incarnation identifies the subscription. If it ends and the client subscribes again, it is
	// another one.
	Incarnation string `json:"incarnation"`
	// Stamp numbers the records of one incarnation of a page in their order: 1, 2, 3 ...
	Stamp uint64 `json:"stamp"`
	From  uint64 `json:"from"`
	Until uint64 `json:"until"` // Forever while it is active
	// Origin says how it was made: yaml, watch, go, api, or that of a list; see ListOrigin.
	Origin       string                `json:"origin"`
	Subscription pipeline.Subscription `json:"subscription"`
	// Followed is set if the page is watched because other pages link to it. Origin is OriginFollow
	// then.
	Followed *Followed `json:"followed,omitempty"`
	// Former are receivers of earlier records, for which notifications may still wait. A cancel drops
	// those too.
	Former []Former `json:"former,omitempty"`
	// End says why the subscription ended: one of the End constants. It is empty if another record of
	// the subscription replaced this one.
	End string `json:"end,omitempty"`
	// Dormant is when the client got a timeout notification of a page that has not answered since; zero otherwise.
	Dormant time.Time `json:"dormant,omitzero"`
	// Tell is the status of a notification that the client gets with this record: pipeline.StatusTimeout,
	// StatusRecovered or StatusExpired. An Outage says the rest. Most records have none.
	Tell string `json:"tell,omitempty"`
}

// KeptSubscriptions begins the names under which index keeps the current subscriptions of a page; see Stamped.Name and
// StampedFrom.
const KeptSubscriptions = "sub/"

// Name returns the name under which index keeps s, behind KeptSubscriptions: it begins with the document. A document
// and a client have one subscription, and one more for each tree.
func (s *Stamped) Name() string {
	if s.Followed != nil {
		return s.Document + "+" + s.Followed.ID + "/" + s.Subscription.Client
	}
	return s.Document + "/" + s.Subscription.Client
}

// KeptFormat is the first byte of the values that index keeps.
const KeptFormat = 5

// StampedFrom returns the subscription that index keeps as b. Its error is broken.
func StampedFrom(b []byte) (*Stamped, error) {
	s := new(Stamped)
	return s, stored.Decode(b, KeptFormat, s)
}

// Forever is Stamped.Until of a subscription that has not ended. A float64 holds it exactly, as
// JSON readers need that.
const Forever = uint64(1)<<53 - 1

// Former is a receiver of an earlier record, and the incarnation that the record had.
type Former struct {
	Receiver     pipeline.Receiver `json:"receiver"`
	Subscription string            `json:"subscription"`
}

// Values of Stamped.End: why a subscription ended.
const (
	EndCancelled = "cancelled" // its waiting notifications are dropped
	EndExpired   = "expired"   // its page expired, of which its client is told
	EndReceiver  = "receiver"  // all its receivers expired
	EndPaused    = "paused"    // a PauseCommand ended it
)

// Ended says that Incarnation of Page ended. It follows all changes of the incarnation.
type Ended struct {
	Page        string `json:"page"`
	Incarnation string `json:"incarnation"`
	// Listed says that subscriptions of the page are still listed as expired. Otherwise nothing of the
	// page is stored any more; Incarnation is then empty if the page had ended before.
	Listed bool `json:"listed,omitempty"`
}

// Outage says that a check of Page failed, or that one succeeded again, of which clients are to be told: those of the
// records with the stamps First to Stamp that have a Tell. Each is told once at each of its receivers.
type Outage struct {
	Page        string `json:"page"`
	Incarnation string `json:"incarnation"`
	First       uint64 `json:"first"`
	Stamp       uint64 `json:"stamp"`
	// Time is that of the check, Since that of the first failed one. Failures is how many failed in a row, Class and
	// Reason are those of the last of them.
	Time     time.Time `json:"time"`
	Since    time.Time `json:"since"`
	Failures int       `json:"failures"`
	Class    string    `json:"class,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Lineage  string    `json:"lineage,omitempty"` // the store that it happened in
}

// Sweep reports to the pages of every lane that Receiver expired or recovered. It is published with
// Tx.EmitAll.
type Sweep struct {
	// Event is the ID of the health event, Time when it happened.
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	// Receiver is the name of a sink.
	Receiver string `json:"receiver"`
	// Resume restarts the subscriptions that ended with the receiver, because it recovered. Otherwise
	// the subscriptions without another receiver end for Reason.
	Resume bool   `json:"resume,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Message returns s as a message on TopicSweeps, without a key.
func (s Sweep) Message() Message {
	b := encode(s)
	return Message{ID: DeriveID("sweep", s.Event), Topic: TopicSweeps, Type: TypeSweep, Time: s.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// SweepFrom is the inverse of Sweep.Message.
func SweepFrom(m Message) (Sweep, error) {
	return decode[Sweep](m, "sweep")
}
