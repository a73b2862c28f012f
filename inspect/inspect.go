// Package inspect has what can be known of a pipeline, as a vokter.Router and the client of the management API return
// it: its pages, subscriptions and receivers ([Listing]), and what happened to the last changes of a page
// ([Explanation]). It also counts what the pipeline does ([Tally]).
package inspect

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/restless"
	"github.com/vokter/vokter/pipeline/text"
)

// ErrElsewhere is the error for a page that this process does not own: another process owns it, or
// none does at the moment. It occurs only with a transport that processes share.
var ErrElsewhere = errors.New("another process owns it, or none does at the moment; ask the other processes")

// The states of pages, documents, subscriptions and receivers in a Listing.
const (
	StateActive       = "active"
	StateFailing      = "failing"
	StateDormant      = "dormant"
	StateLimited      = "limited"
	StateExpired      = "expired"
	StateSelectorGone = "selector_gone"
	StatePageReplaced = "page_replaced"
	StatePaused       = "paused"
)

// ListFilter selects what List returns. Empty fields select everything.
type ListFilter struct {
	// URL selects the page with this address, in any spelling.
	URL string `json:"url,omitempty"`
	// Client selects the subscriptions of this client, and the pages that have one.
	Client string `json:"client,omitempty"`
	// Tag selects the subscriptions with this tag, and the pages that have one.
	Tag string `json:"tag,omitempty"`
	// Sinks adds the configured sinks that no notification was ever meant for. It has an effect
	// only where URL, Client and Tag are empty.
	Sinks bool `json:"sinks,omitempty"`
	// Tree adds the linked pages of subscriptions that follow links.
	Tree bool `json:"tree,omitempty"`
	// Contains selects the pages whose URL contains this text. Case does not count.
	Contains string `json:"contains,omitempty"`
	// State selects the pages in this state, for example StateFailing.
	State string `json:"state,omitempty"`
	// Clients restricts the list to the subscriptions and documents of these clients. Nil means no
	// restriction.
	Clients []string `json:"-"`
	// After and Limit select a part of the pages: those whose URL is behind After, at most Limit. A
	// Limit of 0 means all.
	After string `json:"cursor,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// Listing is what List returns: pages in the order of their URLs, receivers in that of their sinks.
type Listing struct {
	// Pages are the pages that the filter selects.
	Pages []Page `json:"pages"`
	// Receivers are those of the subscriptions that the filter selects.
	Receivers []Receiver `json:"receivers"`
}

// Page is a page that is watched, or whose subscriptions expired.
type Page struct {
	// URL is the canonical address of the page.
	URL string `json:"url"`
	// State is StateActive, StateFailing where the last check failed or did not find a document that
	// somebody watches, StateDormant where so many failed that it is checked ever more rarely, StatePaused where all
	// subscriptions are paused, or StateExpired where all others have expired. Reason says why it is not active, and
	// Since is when that began.
	State  string    `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// PausedUntil is when the first subscription of a page in StatePaused is resumed; zero where no
	// pause has an end.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// Keep lists the origins that watch the page without a subscription.
	Keep []string `json:"keep,omitempty"`
	// Pushed says that the page is never fetched, only pushed. Checks is 0 then, and LastCheck is
	// when it was last pushed.
	Pushed bool `json:"pushed,omitempty"`
	// Checks is the number of the last check, LastCheck when it was made, and NextCheck when the
	// next one is due. NextCheck is zero where a check is being made, is due at once, or where none
	// will be made.
	Checks    uint64    `json:"checks"`
	LastCheck time.Time `json:"last_check,omitzero"`
	NextCheck time.Time `json:"next_check,omitzero"`
	// Failures is how many checks in a row failed. Failures that do not count towards expiry are
	// left out.
	Failures int `json:"failures"`
	// GiveUp is when the first subscription to a dormant page expires, unless the page answers.
	GiveUp time.Time `json:"give_up,omitzero"`
	// Documents are the texts of the page that somebody watches, one for each view.
	Documents []Document `json:"documents"`
	// Subscriptions are those to the documents of the page, in the order of their clients.
	Subscriptions []Subscription `json:"subscriptions"`
}

// Document is one document of a page: its text, as a view of the page selects it.
type Document struct {
	// ID names the document within its page. It is the same after a restart.
	ID string `json:"id"`
	// View says which part of the page it is. The zero View is the whole page.
	View    pipeline.View `json:"view,omitzero"`
	State   string        `json:"state"`   // StateActive, StateSelectorGone or StatePageReplaced
	Version uint64        `json:"version"` // the current one, 0 for none
	// Time is when the current version was found. Baseline says that it was compared with nothing, so
	// that it is no change.
	Time     time.Time `json:"time,omitzero"`
	Baseline bool      `json:"baseline,omitempty"`
	// Title is that of the page.
	Title string `json:"title,omitempty"`
	// Language is the language of the current version, a BCP 47 tag, and LanguageFrom says what
	// decided it.
	Language     string              `json:"language,omitempty"`
	LanguageFrom text.LanguageSource `json:"language_from,omitempty"`
	// ContentType is the media type of the page.
	ContentType string `json:"content_type,omitempty"`
	// TextHash is a hash of the current text, in hexadecimal digits.
	TextHash string `json:"text_hash,omitempty"`
	// Value is the text of the current version if the document is a value, such as "95.00 EUR".
	Value string `json:"value,omitempty"`
	// Restless are the places of the document that change at nearly every check, so that subscriptions to every
	// change are not told of them. With Whole they are, unless Subscription.Restless says otherwise.
	Restless *pipeline.Muting `json:"restless,omitempty"`
}

// Missing says why the document is not on its page, or nothing if it is.
func (d Document) Missing() string {
	switch {
	case d.State == StateSelectorGone && d.View.Value != nil:
		return "no value is found on the page"
	case d.State == StateSelectorGone:
		return "a selector matches nothing, or the text is empty"
	case d.State == StatePageReplaced:
		return "the page looks replaced by an error page, a login wall or an empty page"
	}
	return ""
}

// RestlessText says in one line which places of d change at nearly every check, and nothing if none does.
func (d Document) RestlessText() string {
	if d.Restless == nil {
		return ""
	}
	places := "1 place muted"
	if d.Restless.Count != 1 {
		places = fmt.Sprintf("%d places muted", d.Restless.Count)
	}
	if d.Restless.Count >= restless.MaxPlaces {
		places += ", as many as can be (further ones are told, unless ignore or remove leaves them out)"
	}
	if d.Restless.Whole {
		places = "nothing changes but places that change at nearly every check"
	}
	if len(d.Restless.Places) > 0 {
		places += ": " + strings.Join(d.Restless.Places, "; ")
	}
	return places
}

// Subscription is a subscription to a document of the page.
type Subscription struct {
	pipeline.Subscription
	// Document is the ID of the document.
	Document string `json:"document"`
	// Origin is where it was made, such as "config" or "api", or the name of a list of Apply.
	Origin string `json:"origin"`
	// State is StateActive, StatePaused or StateExpired. Reason says why it expired. Since is when it
	// expired or was paused.
	State  string    `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// PausedUntil is when a paused subscription is resumed; zero where its pause has no end.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// From is the version that was current when the subscription began. Only later versions notify
	// it.
	From uint64 `json:"from"`
	// FollowedFrom is the page whose subscription follows links to this page. It is empty for a
	// subscription that a client made.
	FollowedFrom string `json:"followed_from,omitempty"`
	// Linked are, with ListFilter.Tree, the linked pages that the subscription watches. Bounded says
	// why it does not watch other linked pages, if there are any.
	Linked  []LinkedPage `json:"linked,omitempty"`
	Bounded string       `json:"bounded,omitempty"`
}

// LinkedPage is a page that is watched because other pages link to it.
type LinkedPage struct {
	// URL is the canonical address of the page.
	URL string `json:"url"`
	// From is a page that links to it, on a shortest path from the page of the subscription. Depth is
	// the number of links on this path.
	From  string `json:"from"`
	Depth int    `json:"depth"`
}

// Receiver is a receiver that a subscription names, or for which there are notifications or dead
// letters.
type Receiver struct {
	// Sink is the name of the sink, or the URL of a client's own webhook.
	Sink string `json:"sink"`
	// State is StateActive, StateFailing where the last attempt failed, StateLimited where the
	// receiver asked for a pause because it got too much, StatePaused where its sink is paused, or StateExpired. Reason
	// says why it is failing, limited or expired.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Since is when it began to fail, or expired. Failures is how many attempts have failed since
	// the last success, and NextAttempt when the next one is due.
	Since       time.Time `json:"since,omitzero"`
	Failures    int       `json:"failures"`
	NextAttempt time.Time `json:"next_attempt,omitzero"`
	// Collected is how many notifications are collected in digests. The first of these digests ends
	// at NextDigest.
	Collected  int       `json:"collected,omitempty"`
	NextDigest time.Time `json:"next_digest,omitzero"`
	// Pending is how many other notifications wait for their delivery, Dead how many dead letters
	// there are.
	Pending int `json:"pending"`
	Dead    int `json:"dead"`
	// Used says that there was a notification for it, as far as is remembered.
	Used bool `json:"used"`
	// LastSuccess is when a notification was last delivered, LastFailure when an attempt last
	// failed, and LastError why. They are remembered for a year.
	LastSuccess time.Time `json:"last_success,omitzero"`
	LastFailure time.Time `json:"last_failure,omitzero"`
	LastError   string    `json:"last_error,omitempty"`
}

// ExplainFilter selects the clients and keywords for Explain. Empty fields select all.
type ExplainFilter struct {
	// Client selects the subscriptions and notifications of this client.
	Client string `json:"client,omitempty"`
	// Keyword selects the subscriptions with this keyword.
	Keyword string `json:"keyword,omitempty"`
	// Clients restricts the explanation to the subscriptions, documents and notifications of these
	// clients. Nil means no restriction.
	Clients []string `json:"-"`
}

// Explanation is what Explain returns.
type Explanation struct {
	// Page is the page, as List returns it.
	Page Page `json:"page"`
	// Checks are the last checks, the newest first.
	Checks []Check `json:"checks"`
	// Changes are the last changes, the newest first.
	Changes []Change `json:"changes"`
	// Keywords says of each keyword whether it matched in the last change of its document, and why
	// not. Omitted is how many further keywords are not explained.
	Keywords []Keyword `json:"keywords"`
	Omitted  int       `json:"keywords_omitted,omitempty"`
	// Proposals are the places whose words change often, for subscriptions to every change.
	Proposals []Proposal `json:"proposals,omitempty"`
}

// Check is one check of a page, or several in a row that found nothing new in the same way.
type Check struct {
	// Check is the number of the check, the last one if there are several. Time is when it was made.
	Check uint64    `json:"check"`
	Time  time.Time `json:"time"`
	// Since is when the first of several checks was made, and Repeats is how many followed it.
	Since   time.Time `json:"since,omitzero"`
	Repeats int       `json:"repeats,omitempty"`
	// Result is flow.OutcomeRead, OutcomeUnchanged or OutcomeFailed. Class and Reason say why a
	// check failed. Reason also says why a text that was read did not become a version.
	Result string `json:"result"`
	Class  string `json:"class,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Offline says that the failure does not count, because no other host could be reached either.
	Offline bool `json:"offline,omitempty"`
	// Status is the HTTP status of the answer, 0 for none.
	Status int `json:"status,omitempty"`
	// Bytes is the size of the body that was fetched.
	Bytes int64 `json:"bytes,omitempty"`
	// Took is how long the fetch took.
	Took pipeline.Duration `json:"took,omitempty"`
	// Versions are the numbers of the versions that the check made, by document.
	Versions map[string]uint64 `json:"versions,omitempty"`
	// Passed says, in a sentence for each kind, what of the page was passed over because it is not valid.
	Passed []string `json:"passed,omitempty"`
}

// Change is one change of a document, or what clients were told of an outage of its page, with the notifications that
// it caused.
type Change struct {
	// ID is that of the change, which its notifications have as Notification.Change.
	ID string `json:"id"`
	// Document is the ID of the document.
	Document string `json:"document"`
	// Version is the number of the version that the change made.
	Version uint64 `json:"version"`
	// Check is the number of the check that found it, 0 for a pushed page.
	Check uint64 `json:"check"`
	// Time is when that check was made.
	Time time.Time `json:"time"`
	// Status is what clients were told of an outage of the page: timeout, recovered or expired. Reason is why. ID,
	// Document, Version and Check are zero then. Both are empty where this is a change.
	Status string `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Matches are the notifications. Omitted is how many more there were that are no longer kept.
	Matches []Match `json:"matches"`
	Omitted int     `json:"omitted,omitempty"`
}

// Outage names what clients were told of an outage, for people: Timeout, Recovered or Expired. It is empty where this
// is a change.
func (c Change) Outage() string {
	if c.Status == "" {
		return ""
	}
	return strings.ToUpper(c.Status[:1]) + c.Status[1:]
}

// Match is one notification and its delivery.
type Match struct {
	Notification string `json:"notification"` // its ID
	// Client is who subscribed.
	Client string `json:"client"`
	// Keywords are those that matched. It is empty for a subscription without keywords.
	Keywords []string `json:"keywords"`
	// Sink is the name of the sink that it goes to.
	Sink string `json:"sink"`
	// Via are the sinks that passed the notification on to Sink, such as a route, the first one
	// first. Notification is the ID that it has in Sink.
	Via []string `json:"via,omitempty"`
	// Delivery is one of the Delivery constants. Attempts is how many attempts were made, and
	// Reason why the last one failed. DeliveryTime is when it was delivered or became a dead
	// letter, when the next attempt is due, or when its digest ends.
	Delivery     string    `json:"delivery"`
	Attempts     int       `json:"attempts"`
	Reason       string    `json:"reason,omitempty"`
	DeliveryTime time.Time `json:"delivery_time,omitzero"`
	// Digest is the ID of the digest that has the notification or will have it.
	Digest string `json:"digest,omitempty"`
}

// The states of the delivery of a notification.
const (
	DeliveryPending   = "pending"
	DeliveryDigest    = "digest" // collected in a digest
	DeliveryDelivered = "delivered"
	DeliveryDead      = "dead"      // given up; a replay delivers it again
	DeliveryDropped   = "dropped"   // its subscription was cancelled before
	DeliveryUnrouted  = "unrouted"  // no rule of the route Sink leads to a sink
	DeliveryForgotten = "forgotten" // too long ago to be remembered
	DeliveryElsewhere = "elsewhere" // another process owns the receiver
)

// Keyword says whether one keyword of a subscription matched in the last change of its document. For a
// subscription without keywords it says whether the change was reported; Keyword is empty then.
type Keyword struct {
	// Client is who subscribed.
	Client string `json:"client"`
	// Document is the ID of the document.
	Document string `json:"document"`
	// Keyword is as the subscription spells it.
	Keyword string `json:"keyword"`
	// Version is the current version of the document, which the last change made; 0 if there is
	// none.
	Version uint64 `json:"version"`
	// Matched says that the last change notified the client of it.
	Matched bool `json:"matched"`
	// Why says why the keyword did not match: a sentence about it, without a full stop.
	Why string `json:"why,omitempty"`
}

// AccessAdvice returns what an operator can do where reason, why a check failed, is an answer that asks
// for credentials or refuses them: 401 or 403. Otherwise it returns nothing.
func AccessAdvice(reason string) string {
	if strings.HasPrefix(reason, "HTTP status 401") || strings.HasPrefix(reason, "HTTP status 403") {
		return "if the page needs credentials, give them in access of the configuration"
	}
	return ""
}

// WithAccessAdvice returns reason with its AccessAdvice, if it has one.
func WithAccessAdvice(reason string) string {
	if advice := AccessAdvice(reason); advice != "" {
		return reason + "; " + advice
	}
	return reason
}
