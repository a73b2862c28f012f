package pipeline

import (
	"slices"
	"time"
)

// Statuses of a notification. That of a health event is the event's name.
const (
	StatusOK      = "ok"
	StatusTimeout = "timeout" // the page failed too often: nothing more will come
)

// Types of a notification.
const (
	NotificationType       = "notification"
	NotificationTypeHealth = "health" // only to the sinks for health events
	NotificationTypeDigest = "digest" // what several changes say, told as one
	NotificationTypeTest   = "test"   // sent by hand, to see whether it arrives
)

// Notification is all that one change says to one subscription at one receiver. Its
// JSON is the documented body of a webhook.
type Notification struct {
	Status string `json:"status"`
	// URL is the page, as the subscriber spelled it.
	URL   string `json:"url"`
	Diffs []Diff `json:"diffs"` // never null
	// ID is the same on every attempt; receivers drop what they have seen.
	ID       string    `json:"id"`
	Type     string    `json:"type"`      // one of the NotificationType constants
	Time     time.Time `json:"timestamp"` // of the check
	Client   string    `json:"client"`
	Version  uint64    `json:"version,omitempty"`
	Title    string    `json:"title,omitempty"`
	Language string    `json:"language,omitempty"`
	Change   string    `json:"change,omitempty"`
	// Truncated says that there were more diffs than fit, and Omitted how many.
	Truncated bool `json:"truncated,omitempty"`
	Omitted   int  `json:"omitted,omitempty"`
	// Reason says why Status is not StatusOK, in words for the user.
	Reason string `json:"reason,omitempty"`
	// Health is what Type NotificationTypeHealth tells.
	Health *Health `json:"health,omitempty"`
	// Items are what Type NotificationTypeDigest tells as one, in their order. Diffs are those of
	// all of them; Time, Version, Title and Language are those of the last one.
	Items []Item `json:"items,omitempty"`
}

// Item is a notification that is told as a part of a digest.
type Item struct {
	// ID is the one that the item would have as a notification of its own.
	ID      string    `json:"id"`
	Time    time.Time `json:"timestamp"` // of the check
	Version uint64    `json:"version"`
	Title   string    `json:"title,omitempty"`
	Change  string    `json:"change"`
	// Diffs is how many of the digest's Diffs are the item's, behind those of the items before it.
	Diffs int `json:"diffs"`
	// Truncated says that the item had more diffs than fit, and Omitted how many.
	Truncated bool `json:"truncated,omitempty"`
	Omitted   int  `json:"omitted,omitempty"`
}

// Diff is one keyword found in one difference.
type Diff struct {
	Event   Event  `json:"event"`
	Keyword string `json:"keyword"`
	// Text is the exact text that was added or removed, with the keyword.
	Text string `json:"text"`
	// Snippet is Text in its context, with "..." where it is cut.
	Snippet string `json:"snippet"`
	// Offset is where Text begins in the text of its version, in bytes.
	Offset int `json:"offset"`
}

// Receiver is whom a sink delivers to. The name of its sink is the key of its messages.
type Receiver struct {
	// Sink is the name of the sink in the configuration.
	Sink string `json:"sink"`
}

// Receivers returns whom s is to be delivered to, each once.
func (s Subscription) Receivers() []Receiver {
	all := make([]Receiver, 0, len(s.Sinks))
	for _, sink := range s.Sinks {
		if r := (Receiver{Sink: sink}); !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// HealthEvent is a change in how a page, a document, a receiver or the process does.
type HealthEvent string

// The health events. Each is told once per change of state, never once per check; but
// HealthDeadLetter without a receiver is published for each message that could not be handled.
const (
	HealthFailing           HealthEvent = "failing"       // a page: three checks in a row failed
	HealthRecovered         HealthEvent = "recovered"     // a page that was failing is read again, or a document is found again
	HealthOffline           HealthEvent = "offline"       // the process: every check of at least three hosts fails
	HealthOnline            HealthEvent = "online"        // the process: a host answers again
	HealthSelectorGone      HealthEvent = "selector_gone" // a document: its selector matches nothing, or its text is empty
	HealthExpired           HealthEvent = "expired"       // a page: given up, its clients were told
	HealthOverdue           HealthEvent = "overdue"       // the process: checks are not made in time
	HealthReceiverFailing   HealthEvent = "receiver_failing"
	HealthReceiverRecovered HealthEvent = "receiver_recovered"
	HealthReceiverExpired   HealthEvent = "receiver_expired"
	HealthReceiverDegraded  HealthEvent = "receiver_degraded" // notifications arrive, but not as the configuration says
	HealthDeadLetter        HealthEvent = "dead_letter"       // the first notification since a receiver's last success was given up, or a message could not be handled
	HealthRebaselined       HealthEvent = "rebaselined"       // a document got a new baseline, since its text is made by other rules
	HealthRefused           HealthEvent = "refused"           // a command was not carried out: an answer to whoever sent it
)

// Health is the body of TypeHealth. Fields that do not apply are zero.
type Health struct {
	// ID is derived from what happened, so that handling it twice gives it once.
	ID    string      `json:"id"`
	Event HealthEvent `json:"event"`
	Time  time.Time   `json:"time"`
	// URL is the page that the event is about; Document the document in it.
	URL      string `json:"url,omitempty"`
	Document string `json:"document,omitempty"`
	// Receiver is the receiver that the event is about.
	Receiver *Receiver `json:"receiver,omitempty"`
	// Class is the class of a failed check; Reason says why, in words for the user and
	// without secrets.
	Class  string `json:"class,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Since is when the state began that the event tells of, or ends.
	Since time.Time `json:"since,omitzero"`
	// Count is how many: failed checks or attempts in a row, pages overdue.
	Count int `json:"count,omitempty"`
	// Expired says of HealthReceiverRecovered that the receiver had been expired.
	Expired bool `json:"expired,omitempty"`
	// URLs are some of the pages of an event about the process.
	URLs []string `json:"urls,omitempty"`
	// Sinks are those that get a timeout notification of the page of HealthExpired. They are not
	// told of the event as well.
	Sinks []string `json:"sinks,omitempty"`
	// Command is the ID of the message that HealthRefused answers, Code why it was refused,
	// as the REST API numbers it, and Client whom the command was for, where it says that.
	Command string `json:"command,omitempty"`
	Code    int    `json:"code,omitempty"`
	Client  string `json:"client,omitempty"`
}
