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

// MaxNotification is how large the JSON of a notification is at most, in bytes. A digest is at
// most that large too.
const MaxNotification = 256 << 10

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

// RetryCommand asks delivery to try now what waits for the receiver that is the key of its
// message, whatever its schedule says; with Page, a canonical URL, only where something about
// that page waits.
type RetryCommand struct {
	Page string `json:"page,omitempty"`
}

// Receiver is whom a sink delivers to.
type Receiver struct {
	// Sink is the name of the sink in the configuration.
	Sink string `json:"sink"`
}

// ID names the receiver in keys and IDs. It is the name of its sink.
func (r Receiver) ID() string { return r.Sink }

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
