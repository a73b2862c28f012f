package pipeline

import (
	"encoding/json"
	"slices"
	"time"
)

// Values of Notification.Status. The status of a health notification is the name of its event.
const (
	StatusOK = "ok"
	// StatusTimeout: so many checks of the page failed that it is dormant, or where Expire.Retry is negative that
	// the subscription ends.
	StatusTimeout   = "timeout"
	StatusRecovered = "recovered" // the page of a timeout notification answers again
	StatusExpired   = "expired"   // it did not answer in time: the subscription ends
)

// Values of Notification.Type.
const (
	NotificationType       = "notification"
	NotificationTypeHealth = "health" // a health event; only the sinks for health events get it
	NotificationTypeDigest = "digest" // several notifications in one
	NotificationTypeTest   = "test"   // sent by the command `sink test`
	NotificationTypeChange = "change" // a change record; only a ChangeSink gets it
)

// Notification is what a sink delivers: all matches of one change of a document for one
// subscription. Its JSON is the documented body of a webhook.
type Notification struct {
	// Status is "ok" for a change, or one of the Status constants: what the page or the receiver is in.
	Status string `json:"status"`
	// URL is the page, as the subscriber spelled it.
	URL   string `json:"url"`
	Diffs []Diff `json:"diffs"` // never null
	// ID is the same on every attempt; receivers drop what they have seen.
	ID   string    `json:"id"`
	Type string    `json:"type"` // one of the NotificationType constants
	Time time.Time `json:"time"` // of the check
	// Client is who subscribed, such as "default".
	Client string `json:"client"`
	// Severity and Channel are those of the subscription.
	Severity string `json:"severity,omitempty"`
	Channel  string `json:"channel,omitempty"`
	// Version is the number of the version that the change made, from 1.
	Version uint64 `json:"version,omitempty"`
	// Title is that of the subscription, or else of the page.
	Title string `json:"title,omitempty"`
	// Language is that by which the text was compared, a BCP 47 tag such as "en".
	Language string `json:"language,omitempty"`
	// ContentType is the media type of the page, such as "text/html".
	ContentType string `json:"content_type,omitempty"`
	// Change is the ID of the change, which all its notifications have in common. It is empty where nothing changed.
	Change string `json:"change,omitempty"`
	// Link is the address of the web page about the change. It is set when the notification is
	// delivered, if the address of the web page is known.
	Link string `json:"link,omitempty"`
	// Value is set if the subscription is to a value.
	Value *ValueChange `json:"value,omitempty"`
	// Tags are those of the subscription.
	Tags []string `json:"tags,omitempty"`
	// Truncated says that some diffs did not fit; Omitted is how many.
	Truncated bool `json:"truncated,omitempty"`
	Omitted   int  `json:"omitted,omitempty"`
	// Muting names places of the page of which the subscription is not told from the next notification on.
	Muting *Muting `json:"muting,omitempty"`
	// Since is when the page began to fail, where Status is StatusTimeout, StatusRecovered or StatusExpired.
	Since time.Time `json:"since,omitzero"`
	// Reason says why Status is not StatusOK, in words for the user.
	Reason string `json:"reason,omitempty"`
	// Health is set if Type is NotificationTypeHealth.
	Health *Health `json:"health,omitempty"`
	// Items are set if Type is NotificationTypeDigest: the notifications in the digest, in their
	// order. Diffs then has the diffs of all items; Time, Version, Title, Language and ContentType are those of
	// the last item. Where a sink groups the notifications of several pages, URL, Version, Title, Language and
	// ContentType are empty, Client is empty unless all items have the same one, Severity is the highest, and each item
	// has its own.
	Items []Item `json:"items,omitempty"`
	// Source is the URI of the installation, if it has one, which is the source of a CloudEvent. It is set when the
	// notification is delivered.
	Source string `json:"-"`
	// Record is set if Type is NotificationTypeChange: the JSON of the change record
	// vokter.change.v1. A sink delivers it in place of the notification.
	Record json.RawMessage `json:"record,omitempty"`
}

// Item is one notification in a digest.
type Item struct {
	// ID is the ID that the notification would have without the digest.
	ID string `json:"id"`
	// URL, Client and Severity are set where a sink groups notifications.
	URL      string    `json:"url,omitempty"`
	Client   string    `json:"client,omitempty"`
	Severity string    `json:"severity,omitempty"`
	Time     time.Time `json:"time"` // of the check
	// Version is the number of the version that the change made, from 1.
	Version uint64 `json:"version"`
	// Title is that of the subscription, or else of the page.
	Title string `json:"title,omitempty"`
	// Change is the ID of the change.
	Change string `json:"change"`
	// Value is the change of the value, if the subscription is to a value.
	Value *ValueChange `json:"value,omitempty"`
	// Diffs is how many of Notification.Diffs belong to the item. They follow those of the items
	// before it.
	Diffs int `json:"diffs"`
	// Truncated says that some diffs of the item did not fit; Omitted is how many.
	Truncated bool `json:"truncated,omitempty"`
	Omitted   int  `json:"omitted,omitempty"`
}

// Diff is one keyword found in one difference. For a subscription without keywords it is a text that
// was added or removed.
type Diff struct {
	// Event is Added or Removed.
	Event Event `json:"event"`
	// Keyword is empty for a subscription without keywords.
	Keyword string `json:"keyword"`
	// Text is the exact text that was added or removed, with the keyword.
	Text string `json:"text"`
	// Counterpart is what stands in place of Text in the other version: the new text for Removed, the old one for Added.
	// It is empty if that is nothing, if it is longer than 2,048 bytes, and for a subscription without keywords, whose
	// notification has both sides: see Edit.
	Counterpart string `json:"counterpart,omitempty"`
	// Snippet is Text in its context, with "..." where it is cut. SnippetAt is where Text begins in it, in bytes.
	Snippet   string `json:"snippet"`
	SnippetAt int    `json:"snippet_at,omitempty"`
	// Item says what became of the list item, table row, card or entry in which Text stands: "new", "gone" or
	// "changed". Title is the heading or the first block of it, up to 100 bytes, and "…" if that is longer. Both
	// are empty outside of items, and Title alone is set in an item that only moved.
	Item  string `json:"item,omitempty"`
	Title string `json:"title,omitempty"`
	// Offset is where Text begins in the text of its version, in bytes: that of Notification.Version
	// for Added, the version before for Removed. Router.Text returns these texts.
	Offset int `json:"offset"`
	// Edit numbers the edits of the notification from 1 if the subscription has no keywords; else it
	// is 0. A removed text and the added text in its place have the same number and follow each
	// other. All texts of an item that is new or gone have the same number.
	Edit int `json:"edit,omitempty"`
}

// Values of Diff.Item: what became of an item, such as a list item, a table row or a card.
const (
	ItemNew     = "new"     // only the new version has it
	ItemGone    = "gone"    // only the old version has it
	ItemChanged = "changed" // both have it, with other words
)

// Receiver is whom a sink delivers to. The name of its sink is the key of its messages.
type Receiver struct {
	// Sink is the name of the sink in the configuration.
	Sink string `json:"sink"`
}

// Receivers returns the receivers of s, each once.
func (s Subscription) Receivers() []Receiver {
	all := make([]Receiver, 0, len(s.Sinks))
	for _, sink := range s.Sinks {
		if r := (Receiver{Sink: sink}); !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// TellsOutage reports whether n tells what became of a page that fails, rather than a change of it.
func (n Notification) TellsOutage() bool {
	return n.Type != NotificationTypeHealth && (n.Status == StatusTimeout || n.Status == StatusRecovered || n.Status == StatusExpired)
}

// HealthEvent is a change in the health of a page, a document, a receiver or the process.
type HealthEvent string

// The health events. Each is published once for a change of state, not for each check. The
// exception is HealthDeadLetter without a receiver: it is published for each message that could
// not be handled.
const (
	HealthFailing           HealthEvent = "failing"       // a page: three checks in a row failed
	HealthRecovered         HealthEvent = "recovered"     // a page that was failing is read again, or a document is found again
	HealthOffline           HealthEvent = "offline"       // the process: every check of at least three hosts fails
	HealthOnline            HealthEvent = "online"        // the process: a host answers again
	HealthSelectorGone      HealthEvent = "selector_gone" // a document: its selector matches nothing, or its text is empty
	HealthPageReplaced      HealthEvent = "page_replaced" // a document: an error page, a login wall, a challenge or an empty shell took its place; see View.Replaced
	HealthDormant           HealthEvent = "dormant"       // a page: it is checked ever more rarely, and its clients were notified
	HealthExpired           HealthEvent = "expired"       // a page: it is not checked any more, and its clients were notified
	HealthOverdue           HealthEvent = "overdue"       // the process: checks are late
	HealthReceiverFailing   HealthEvent = "receiver_failing"
	HealthReceiverRecovered HealthEvent = "receiver_recovered"
	HealthReceiverExpired   HealthEvent = "receiver_expired"
	HealthReceiverDegraded  HealthEvent = "receiver_degraded" // notifications arrive, but not as the configuration says
	HealthDeadLetter        HealthEvent = "dead_letter"       // a notification could not be delivered, for the first time since the receiver's last success; or a message could not be handled
	HealthRebaselined       HealthEvent = "rebaselined"       // a document: its text is extracted by new rules, so it got a new baseline
	HealthFollowBounded     HealthEvent = "follow_bounded"    // a page: more pages are linked than its subscription may watch
	HealthRefused           HealthEvent = "refused"           // a command was refused: the answer to its sender
)

// Health is a health event with its details. Fields that do not apply are zero.
type Health struct {
	// ID is derived from the event, so that an event that is published twice has one ID.
	ID string `json:"id"`
	// Event says what happened: one of the Health constants.
	Event HealthEvent `json:"event"`
	// Time is when it happened.
	Time time.Time `json:"time"`
	// URL is the page that the event is about; Document the document in it.
	URL      string `json:"url,omitempty"`
	Document string `json:"document,omitempty"`
	// Receiver is the receiver that the event is about.
	Receiver *Receiver `json:"receiver,omitempty"`
	// Class is the class of a failed check; Reason says why, in words for the user and
	// without secrets.
	Class  string `json:"class,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Since is when the state began that the event reports, or ends.
	Since time.Time `json:"since,omitzero"`
	// Count is the number of failed checks or attempts in a row, or of overdue pages.
	Count int `json:"count,omitempty"`
	// Expired says, with HealthReceiverRecovered, that the receiver had expired.
	Expired bool `json:"expired,omitempty"`
	// URLs are some of the pages of an event about the process.
	URLs []string `json:"urls,omitempty"`
	// Sinks are the names of the sinks that get a notification of what the event says of the page: its
	// subscribers are told with HealthDormant, HealthExpired, and HealthRecovered after the former. They do not get
	// the health event as well.
	Sinks []string `json:"sinks,omitempty"`
	// With HealthRefused, Command is the ID of the refused message, Code is why it was refused (a
	// Code constant of package flow), and Client is the client that the command names, if any. With
	// HealthFollowBounded, Client is the client of the subscription.
	Command string `json:"command,omitempty"`
	Code    int    `json:"code,omitempty"`
	Client  string `json:"client,omitempty"`
}
