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

// Addressed is a notification with its receiver: the body of TypeAddressed.
type Addressed struct {
	Receiver     pipeline.Receiver     `json:"receiver"`
	Document     string                `json:"document"`
	Subscription string                `json:"subscription"` // its incarnation
	Notification pipeline.Notification `json:"notification"`
	// Digest collects the notification with others of its subscription. Nil means that it is
	// delivered at once.
	Digest *pipeline.Digest `json:"digest,omitempty"`
}

// To returns a as it is passed on to another sink. A change of one subscription has the same ID in
// a sink on whichever way it gets there, so that the sink gets it once.
func (a Addressed) To(sink string) Addressed {
	n := &a.Notification
	switch {
	case n.Health != nil:
		n.ID = DeriveID("notification", n.Health.ID, sink)
	case n.Change != "" && a.Subscription != "":
		n.ID = NotificationID(n.Change, a.Subscription, sink)
	default:
		n.ID = DeriveID("passed on", n.ID, sink)
	}
	a.Receiver.Sink = sink
	return a
}

// HeaderReplay marks a notification that is delivered although one with its ID was delivered before.
// Its value is "1".
const HeaderReplay = "vokter_replay"

// Withdraw says that a subscription was cancelled. Its notifications to Receiver are dropped, also
// those that come later.
type Withdraw struct {
	Receiver     pipeline.Receiver `json:"receiver"`
	Subscription string            `json:"subscription"` // its incarnation
	Page         string            `json:"page"`
}

// Message returns w as a message on TopicNotifications.
func (w Withdraw) Message(at time.Time) Message {
	b := encode(w)
	return Message{ID: DeriveID("withdraw", w.Subscription, w.Receiver.Sink), Topic: TopicNotifications, Key: w.Receiver.Sink,
		Type: TypeWithdraw, Subject: w.Page, Time: at, Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// Message returns a as a message on TopicNotifications.
func (a Addressed) Message() (Message, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return Message{}, failure.Permanent(fmt.Errorf("notification %s: %w", a.Notification.ID, err))
	}
	return Message{ID: a.Notification.ID, Topic: TopicNotifications, Key: a.Receiver.Sink, Type: TypeAddressed,
		Subject: a.Notification.URL, Time: a.Notification.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: b}, nil
}

// HealthKey is the key of health events about the process.
const HealthKey = "process"

// HealthMessage returns h as a message on TopicHealth. Its key is the receiver, the page or
// HealthKey.
func HealthMessage(h pipeline.Health) Message {
	h.Time, h.Since = h.Time.Round(0).UTC(), h.Since.Round(0).UTC()
	b := encode(h)
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

// HealthFrom is the inverse of HealthMessage.
func HealthFrom(m Message) (pipeline.Health, error) {
	return decode[pipeline.Health](m, "health event")
}

// HealthID returns the ID of a health event. about is the incarnation of a page or a receiver, n the
// number of the check, attempt or change of state that caused it.
func HealthID(event pipeline.HealthEvent, about string, n uint64) string {
	return DeriveID("health", string(event), about, strconv.FormatUint(n, 10))
}

// DeadLetter is a notification that could not be delivered, or another message that could not be
// handled: the body of TypeDeadLetter.
type DeadLetter struct {
	// Reason says why, without secrets.
	Reason   string    `json:"reason"`
	Time     time.Time `json:"time"`
	Attempts int       `json:"attempts"`
	// Addressed is the notification that was not delivered. It is nil for another message, such as a
	// pushed page.
	Addressed *Addressed `json:"addressed,omitempty"`
	// Group and Topic are the consumer group and topic of that message, Headers and Body its
	// content.
	Group   string            `json:"group,omitempty"`
	Topic   string            `json:"topic,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"`
}

// URL returns the URL of the page that d is about, without a password, or "".
func (d DeadLetter) URL() string { return pageurl.Redacted(d.pageURL()) }

// Type returns the type of the message that could not be handled.
func (d DeadLetter) Type() string { return d.Headers[headerType] }

func (d DeadLetter) pageURL() string {
	if d.Addressed != nil {
		return d.Addressed.Notification.URL
	}
	return d.Headers[headerSubject]
}

// Listed returns d for a list: without Body, because many of them are large, and without a password
// in the URL of its message.
func (d DeadLetter) Listed() DeadLetter {
	d.Body, d.Headers = nil, maps.Clone(d.Headers)
	for _, name := range []string{headerSubject, HeaderKey} {
		if v, ok := d.Headers[name]; ok {
			d.Headers[name] = pageurl.Redacted(v)
		}
	}
	return d
}

// Again returns the message that brings back what d is about: the notification, or for a snapshot or a change the
// command to make the snapshot again. Other messages cannot be brought back: then ok is false.
func (d DeadLetter) Again() (m Message, ok bool, err error) {
	if d.Addressed != nil {
		if m, err = d.Addressed.Message(); err == nil {
			m.Header[HeaderReplay] = "1"
		}
		return m, true, err
	}
	name, ok := d.compared()
	if !ok {
		return m, false, nil
	}
	return name.compareMessage(d.Time), true, nil
}

// compared returns the version that d, a snapshot or a change, is about.
func (d DeadLetter) compared() (n SnapshotName, ok bool) {
	b := d.Body
	switch d.Type() {
	case TypeSnapshot:
		b = []byte(d.Headers[headerSnapshot])
	case TypeChange:
	default:
		return n, false
	}
	return n, json.Unmarshal(b, &n) == nil
}

// Limits of a dead letter, in bytes. A dead letter that is too large to be published would
// block its topic.
const (
	maxDeadBody    = 512 << 10
	maxDeadHeaders = 64 << 10 // names and values, together
	maxDeadReason  = 4 << 10
	maxDeadKey     = 4 << 10 // also of its subject
)

// Bounded returns d without a part that is too large. Its Reason says what is left out.
func (d DeadLetter) Bounded() DeadLetter {
	if d.Addressed != nil {
		return d // at most MaxNotification bytes
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

// Message returns d as a message on TopicDead. id is the ID of the notification or message. The
// message is bounded: a key that is too long is replaced by one that is derived from it, and a
// subject that is too long is left out.
func (d DeadLetter) Message(id, key, subject string) Message {
	if len(key) > maxDeadKey {
		key = DeriveID("dead key", key)
	}
	if len(subject) > maxDeadKey {
		subject = ""
	}
	b := encode(d.Bounded())
	return Message{ID: DeriveID("dead", id, d.Group), Topic: TopicDead, Key: key, Type: TypeDeadLetter,
		Subject: subject, Time: d.Time, Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// RetryFilter selects the receivers for Router.Retry. Empty fields select all.
type RetryFilter struct {
	Sink string `json:"sink,omitempty"`
	// URL selects the receivers with a pending notification about this page.
	URL string `json:"url,omitempty"`
}

// Retried is a receiver whose pending notifications are attempted again.
type Retried struct {
	Sink string `json:"sink"`
	// Waiting is how many of the pending notifications the filter selects. Those collected for a
	// digest do not count: they wait for the end of the digest.
	Waiting int `json:"waiting"`
	// Elsewhere says that another process owns the receiver and was asked to retry. Waiting is 0
	// then, because only the owner knows the number.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// DeadFilter selects dead letters. Empty fields select all notifications, snapshots and changes.
type DeadFilter struct {
	Sink   string    `json:"sink,omitempty"`
	Client string    `json:"client,omitempty"`
	URL    string    `json:"url,omitempty"`  // its page
	Since  time.Time `json:"since,omitzero"` // dead since then or later
	// Messages also selects messages that cannot be brought back, such as pushed pages, if Sink and
	// Client are empty.
	Messages bool `json:"-"`
}

// Selects reports whether f selects d.
func (f DeadFilter) Selects(d DeadLetter) bool {
	if f.URL != "" && !samePage(f.URL, d.pageURL()) || d.Time.Before(f.Since) {
		return false
	}
	if d.Addressed == nil {
		_, again := d.compared()
		return (f.Messages || again) && f.Sink == "" && f.Client == ""
	}
	return (f.Sink == "" || f.Sink == d.Addressed.Receiver.Sink) &&
		(f.Client == "" || f.Client == d.Addressed.Notification.Client)
}

func samePage(a, b string) bool {
	x, errX := pageurl.Canonical(a)
	y, errY := pageurl.Canonical(b)
	return errX == nil && errY == nil && x == y
}

// ReplayCommand delivers the dead letters of one receiver again that Filter selects. The key of its
// message is the receiver.
type ReplayCommand struct {
	Filter DeadFilter `json:"filter"`
}

// MaxNotification is the largest size of the JSON of a notification or digest, in bytes.
const MaxNotification = 256 << 10
