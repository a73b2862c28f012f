package pipeline

import (
	"encoding/json"
	"fmt"
	"time"
)

// Statuses of a notification.
const (
	StatusOK      = "ok"
	StatusTimeout = "timeout"
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
	Type     string    `json:"type"`      // "notification"
	Time     time.Time `json:"timestamp"` // of the check
	Client   string    `json:"client"`
	Version  uint64    `json:"version,omitempty"`
	Title    string    `json:"title,omitempty"`
	Language string    `json:"language,omitempty"`
	Change   string    `json:"change,omitempty"`
	// Truncated says that there were more diffs than fit.
	Truncated bool `json:"truncated,omitempty"`
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

// Addressed is a notification with the receiver it goes to: the body of TypeNotification.
type Addressed struct {
	Receiver     Receiver     `json:"receiver"`
	Document     string       `json:"document"`
	Subscription string       `json:"subscription"` // its incarnation
	Notification Notification `json:"notification"`
}

// Receiver is a sink and a target in it.
type Receiver struct {
	Sink   string `json:"sink"`
	Target string `json:"target,omitempty"`
}

// ID names the receiver in keys and IDs.
func (r Receiver) ID() string {
	if r.Target == "" {
		return r.Sink
	}
	return r.Sink + " " + r.Target
}

// Message returns a as a message on TopicNotifications.
func (a Addressed) Message() (Message, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return Message{}, Permanent(fmt.Errorf("notification %s: %w", a.Notification.ID, err))
	}
	return Message{ID: a.Notification.ID, Topic: TopicNotifications, Key: a.Receiver.ID(), Type: TypeNotification,
		Subject: a.Notification.URL, Time: a.Notification.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}, nil
}

// DeadLetter is what was given up: the body of TypeDeadLetter.
type DeadLetter struct {
	// Reason says why, without secrets; Group and Topic say where a message that could not
	// be handled was read.
	Reason   string    `json:"reason"`
	Time     time.Time `json:"time"`
	Attempts int       `json:"attempts"`
	// Addressed is the notification that was not delivered, if it is one.
	Addressed *Addressed `json:"addressed,omitempty"`
	Group     string     `json:"group,omitempty"`
	Topic     string     `json:"topic,omitempty"`
	// Message is any other message, with its headers.
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"`
}

// Message returns d as a message on TopicDead, under key. id is that of what was given up.
func (d DeadLetter) Message(id, key, subject string) Message {
	b, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("pipeline: dead letter: %v", err)) // every field is encodable
	}
	return Message{ID: DeriveID("dead", id, d.Group), Topic: TopicDead, Key: key, Type: TypeDeadLetter,
		Subject: subject, Time: d.Time, Header: map[string]string{headerContent: "application/json"}, Body: b}
}
