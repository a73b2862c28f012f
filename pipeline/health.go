package pipeline

import (
	"time"
)

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
