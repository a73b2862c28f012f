package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pageurl"
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
	return Message{ID: DeriveID("withdraw", w.Subscription, w.Receiver.Sink), Topic: TopicNotifications, Key: w.Receiver.Sink,
		Type: TypeWithdraw, Subject: w.Page, Time: at, Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// Message returns a as a message on TopicNotifications.
func (a Addressed) Message() (Message, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return Message{}, failure.Permanent(fmt.Errorf("notification %s: %w", a.Notification.ID, err))
	}
	return Message{ID: a.Notification.ID, Topic: TopicNotifications, Key: a.Receiver.Sink, Type: TypeNotification,
		Subject: a.Notification.URL, Time: a.Notification.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}, nil
}

// HealthKey is the key of events about the process.
const HealthKey = "process"

// HealthMessage returns h as a message on TopicHealth, whose key is the page, the receiver or
// HealthKey.
func HealthMessage(h pipeline.Health) Message {
	h.Time, h.Since = h.Time.Round(0).UTC(), h.Since.Round(0).UTC()
	b, err := json.Marshal(h)
	if err != nil {
		panic(fmt.Sprintf("pipeline: health: %v", err)) // every field is encodable
	}
	key := HealthKey
	switch {
	case h.Receiver != nil:
		key = h.Receiver.Sink
	case h.URL != "":
		key = h.URL
	}
	return Message{ID: h.ID, Topic: TopicHealth, Key: key, Type: TypeHealth, Subject: h.URL, Time: h.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// HealthFrom is the inverse of Health.Message.
func HealthFrom(m Message) (pipeline.Health, error) {
	var h pipeline.Health
	if err := json.Unmarshal(m.Body, &h); err != nil {
		return h, failure.Permanent(fmt.Errorf("health event %s: %w", m.ID, err))
	}
	return h, nil
}

// HealthID is the ID of an event: about what (the incarnation of a page, a receiver),
// and the number of the check, attempt or change of state that brought it.
func HealthID(event pipeline.HealthEvent, about string, n uint64) string {
	return DeriveID("health", string(event), about, strconv.FormatUint(n, 10))
}

// DeadLetter is what was given up: the body of TypeDeadLetter.
type DeadLetter struct {
	// Reason says why, without secrets.
	Reason   string    `json:"reason"`
	Time     time.Time `json:"time"`
	Attempts int       `json:"attempts"`
	// Addressed is the notification that was not delivered; nil: it was another message, such
	// as a page that was pushed, which could not be handled.
	Addressed *Addressed `json:"addressed,omitempty"`
	// Group and Topic say where that message was read; Headers and Body are its own.
	Group   string            `json:"group,omitempty"`
	Topic   string            `json:"topic,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"`
}

// URL returns the URL of the page that d is about, or nothing where it is about none. What
// may be a password in it is left out.
func (d DeadLetter) URL() string { return pageurl.Redacted(d.url()) }

// Type returns the type of the message that could not be handled.
func (d DeadLetter) Type() string { return d.Headers[headerType] }

func (d DeadLetter) url() string {
	if d.Addressed != nil {
		return d.Addressed.Notification.URL
	}
	return d.Headers[headerSubject]
}

// Listed returns d as it may be shown: without the Body, since those of many messages are
// large together, and without what may be a password in the URL of its message.
func (d DeadLetter) Listed() DeadLetter {
	d.Body, d.Headers = nil, maps.Clone(d.Headers)
	for _, name := range []string{headerSubject, HeaderKey} {
		if v, ok := d.Headers[name]; ok {
			d.Headers[name] = pageurl.Redacted(v)
		}
	}
	return d
}

// What a dead letter holds at most of a message that could not be handled, in bytes. A letter
// that is too large to be published would hold up everything behind that message.
const (
	maxDeadBody    = 512 << 10
	maxDeadHeaders = 64 << 10 // names and values, together
	maxDeadReason  = 4 << 10
	maxDeadKey     = 4 << 10 // also of its subject
)

// Bounded returns d without what makes it too large. The reason says what is left out.
func (d DeadLetter) Bounded() DeadLetter {
	if d.Addressed != nil {
		return d // a notification has bounds of its own
	}
	d.Reason = Clipped(d.Reason, maxDeadReason)
	if n := len(d.Body); n > maxDeadBody {
		d.Body = nil
		d.Reason += fmt.Sprintf(" (its body of %d bytes is not kept)", n)
	}
	n := 0
	for name, value := range d.Headers {
		n += len(name) + len(value)
	}
	if n > maxDeadHeaders {
		d.Headers = nil
		d.Reason += fmt.Sprintf(" (its headers of %d bytes are not kept)", n)
	}
	return d
}

// Message returns d as a message on TopicDead, under key. id is that of what was given up. What
// would make the message too large is left out: a key becomes one that is derived from it.
func (d DeadLetter) Message(id, key, subject string) Message {
	if len(key) > maxDeadKey {
		key = DeriveID("dead key", key)
	}
	if len(subject) > maxDeadKey {
		subject = ""
	}
	b, err := json.Marshal(d.Bounded())
	if err != nil {
		panic(fmt.Sprintf("pipeline: dead letter: %v", err)) // every field is encodable
	}
	return Message{ID: DeriveID("dead", id, d.Group), Topic: TopicDead, Key: key, Type: TypeDeadLetter,
		Subject: subject, Time: d.Time, Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// DeadFilter selects dead letters. Empty fields select all notifications.
type DeadFilter struct {
	Sink   string    `json:"sink,omitempty"`
	Client string    `json:"client,omitempty"`
	URL    string    `json:"url,omitempty"`  // its page
	Since  time.Time `json:"since,omitzero"` // given up then or later
	// Messages also selects other messages that could not be handled, such as pages that were
	// pushed, where Sink and Client are empty. They can be listed, but not replayed.
	Messages bool `json:"-"`
}

// Selects reports whether f selects d.
func (f DeadFilter) Selects(d DeadLetter) bool {
	if f.URL != "" && !samePage(f.URL, d.url()) || d.Time.Before(f.Since) {
		return false
	}
	if d.Addressed == nil {
		return f.Messages && f.Sink == "" && f.Client == ""
	}
	return (f.Sink == "" || f.Sink == d.Addressed.Receiver.Sink) &&
		(f.Client == "" || f.Client == d.Addressed.Notification.Client)
}

func samePage(a, b string) bool {
	x, errX := pageurl.Canonical(a)
	y, errY := pageurl.Canonical(b)
	return errX == nil && errY == nil && x == y
}

// ReplayCommand asks for the dead letters of one receiver, the message's key, to be delivered
// again: those that Filter selects.
type ReplayCommand struct {
	Filter DeadFilter `json:"filter"`
}

// MaxNotification is how large the JSON of a notification is at most, in bytes. A digest is at
// most that large too.
const MaxNotification = 256 << 10
