package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Addressed is a notification with the receiver it goes to: the body of TypeNotification.
type Addressed struct {
	Receiver     pipeline.Receiver     `json:"receiver"`
	Document     string                `json:"document"`
	Subscription string                `json:"subscription"` // its incarnation
	Notification pipeline.Notification `json:"notification"`
	// Digest says that the notification waits for others of its subscription, to be told with
	// them; nil means that it is told at once.
	Digest *pipeline.Digest `json:"digest,omitempty"`
}

// HeaderReplay marks a notification that is delivered again on demand, whatever is
// remembered of its ID; its value is "1".
const HeaderReplay = "vokter_replay"

// Withdraw says that a subscription was cancelled: what is still to be delivered to Receiver
// because of it, or comes later, is dropped.
type Withdraw struct {
	Receiver     pipeline.Receiver `json:"receiver"`
	Subscription string            `json:"subscription"` // its incarnation
	Page         string            `json:"page"`
}

// Message returns w as a message on TopicNotifications.
func (w Withdraw) Message(at time.Time) Message {
	b, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("pipeline: withdraw: %v", err)) // every field is encodable
	}
	return Message{ID: DeriveID("withdraw", w.Subscription, w.Receiver.ID()), Topic: TopicNotifications, Key: w.Receiver.ID(),
		Type: TypeWithdraw, Subject: w.Page, Time: at, Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// Message returns a as a message on TopicNotifications.
func (a Addressed) Message() (Message, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return Message{}, pipeline.Permanent(fmt.Errorf("notification %s: %w", a.Notification.ID, err))
	}
	return Message{ID: a.Notification.ID, Topic: TopicNotifications, Key: a.Receiver.ID(), Type: TypeNotification,
		Subject: a.Notification.URL, Time: a.Notification.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}, nil
}
