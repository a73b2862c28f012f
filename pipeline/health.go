package pipeline

import (
	"encoding/json"
	"fmt"
	"strconv"
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

// HealthKey is the key of events about the process.
const HealthKey = "process"

// Message returns h as a message on TopicHealth, whose key is the page, the receiver or
// HealthKey.
func (h Health) Message() Message {
	h.Time, h.Since = h.Time.Round(0).UTC(), h.Since.Round(0).UTC()
	b, err := json.Marshal(h)
	if err != nil {
		panic(fmt.Sprintf("pipeline: health: %v", err)) // every field is encodable
	}
	key := HealthKey
	switch {
	case h.Receiver != nil:
		key = h.Receiver.ID()
	case h.URL != "":
		key = h.URL
	}
	return Message{ID: h.ID, Topic: TopicHealth, Key: key, Type: TypeHealth, Subject: h.URL, Time: h.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// HealthFrom is the inverse of Health.Message.
func HealthFrom(m Message) (Health, error) {
	var h Health
	if err := json.Unmarshal(m.Body, &h); err != nil {
		return h, Permanent(fmt.Errorf("health event %s: %w", m.ID, err))
	}
	return h, nil
}

// HealthID is the ID of an event: about what (the incarnation of a page, a receiver),
// and the number of the check, attempt or change of state that brought it.
func HealthID(event HealthEvent, about string, n uint64) string {
	return DeriveID("health", string(event), about, strconv.FormatUint(n, 10))
}
