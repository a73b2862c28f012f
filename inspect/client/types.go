package client

import (
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Prefix begins the paths of the API.
const Prefix = "/api/v1"

// Process describes the process that answers.
type Process struct {
	// Data is the absolute path of its data directory. It is empty for a process that keeps
	// everything in memory, and for a token that is limited to some clients.
	Data string `json:"data"`
	// Version is the version of the program.
	Version string `json:"version"`
	// Lanes counts the lanes that it owns. It is nil if the process owns all lanes or does not
	// know them yet.
	Lanes *Lanes `json:"lanes,omitempty"`
}

// Lanes counts the lanes of a transport that several processes share.
type Lanes struct {
	Owned int `json:"owned"` // by this process
	// Restoring is how many of Owned are not ready, because their state is still being read.
	Restoring int `json:"restoring,omitempty"`
	All       int `json:"all"`
}

// Pages is a part of the list of pages, in the order of their URLs. Next is the cursor of the
// following part; it is empty after the last page.
type Pages struct {
	Pages []inspect.Page `json:"pages"`
	Next  string         `json:"next,omitempty"`
}

// Subscriptions is a part of the list of subscriptions, in the order of their pages and clients.
// Next is the cursor of the following part; it is empty after the last one.
type Subscriptions struct {
	Subscriptions []Subscription `json:"subscriptions"`
	Next          string         `json:"next,omitempty"`
}

// Subscription is a subscription with the canonical URL of its page.
type Subscription struct {
	Page string `json:"page"`
	inspect.Subscription
}

// Deliveries are notifications with their deliveries. Next is the cursor of the following part; it
// is empty after the last one, and for the deliveries of one page. Partial says that deliveries are
// missing, because the state is still being read.
type Deliveries struct {
	Deliveries []Delivery `json:"deliveries"`
	Next       string     `json:"next,omitempty"`
	Partial    bool       `json:"partial,omitempty"`
}

// Delivery is one notification with its delivery. Change is the ID of the change of the page URL,
// which made Version of Document at Time; it is empty where it tells of an outage of the page.
type Delivery struct {
	URL      string    `json:"url"`
	Change   string    `json:"change,omitempty"`
	Document string    `json:"document,omitempty"`
	Version  uint64    `json:"version,omitempty"`
	Time     time.Time `json:"time"`
	inspect.Match
}

// SubscriptionFilter selects subscriptions. Empty fields select all. State is one of
// inspect.StateActive, StatePaused and StateExpired. Cursor and Limit select a part.
type SubscriptionFilter struct {
	URL    string `json:"url,omitempty"`
	Client string `json:"client,omitempty"`
	Tag    string `json:"tag,omitempty"`
	State  string `json:"state,omitempty"`
	Origin string `json:"origin,omitempty"`
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit,omitempty"`
}

// ChangeEvent is an event of Events: a document has a new version that differs from the one before.
type ChangeEvent struct {
	Page     string    `json:"page"`
	Document string    `json:"document"`
	ID       string    `json:"id"`
	Version  uint64    `json:"version"`
	Time     time.Time `json:"time"`
}

// NotificationEvent is an event of Events: a notification that will be delivered to a sink.
type NotificationEvent struct {
	Page         string                `json:"page"`
	Document     string                `json:"document"`
	Sink         string                `json:"sink"`
	Notification pipeline.Notification `json:"notification"`
}

// PingEvent is the first event of Events, and comes again every 15 seconds.
type PingEvent struct {
	Time time.Time `json:"time"`
}

// DroppedEvent is the last event of Events for a client that reads too slowly.
type DroppedEvent struct {
	Reason string `json:"reason"`
}

// Changed replaces the subscription of its client to a document, given by its ID.
type Changed struct {
	Document     string                `json:"document"`
	Subscription pipeline.Subscription `json:"subscription"`
}

// PreviewRequest asks for the text that a subscription would watch. Source asks for the body of the
// page as well.
type PreviewRequest struct {
	Subscription pipeline.Subscription `json:"subscription"`
	Source       bool                  `json:"source,omitempty"`
}

// SinkRef names a sink.
type SinkRef struct {
	Sink string `json:"sink"`
}

// SinkTest says whether the test message of a sink was delivered, and why not.
type SinkTest struct {
	Delivered bool   `json:"delivered"`
	Reason    string `json:"reason,omitempty"`
}

// PageRef names a page.
type PageRef struct {
	URL string `json:"url"`
}

// Receivers is the list of receivers, in the order of their sinks.
type Receivers struct {
	Receivers []inspect.Receiver `json:"receivers"`
}

// DeadLetters is a part of the list of dead letters, the oldest first. Next is the cursor of the
// following part; it is empty after the last one.
type DeadLetters struct {
	DeadLetters []flow.DeadLetter `json:"dead_letters"`
	Next        string            `json:"next,omitempty"`
}

// RetriedReceivers are the receivers whose pending notifications are attempted again.
type RetriedReceivers struct {
	Receivers []flow.Retried `json:"receivers"`
}

// Replayed says how many dead letters are delivered again.
type Replayed struct {
	Replayed int `json:"replayed"`
}

// Target names the subscriptions of a client on a page.
type Target struct {
	URL    string `json:"url"`
	Client string `json:"client,omitempty"`
}

// SinkKind describes a kind of sink.
type SinkKind struct {
	Kind   string      `json:"kind"`
	Doc    string      `json:"doc" doc:"What it does."`
	Fields []SinkField `json:"fields"`
}

// SinkField describes an option of a kind of sink.
type SinkField struct {
	Name     string `json:"name"`
	Type     string `json:"type" doc:"In words, such as string, secret, true or false, or list of strings."`
	Required bool   `json:"required,omitempty"`
	Default  string `json:"default,omitempty" doc:"In words; empty: none."`
	Doc      string `json:"doc" doc:"In Markdown."`
}

// SinkKinds are the kinds of sinks that can be made at run time.
type SinkKinds struct {
	Kinds []SinkKind `json:"kinds"`
}

// Sink is a sink that was made at run time.
type Sink struct {
	Sink    string            `json:"sink" doc:"Its name."`
	Kind    string            `json:"kind"`
	Options map[string]string `json:"options" doc:"Its options as text. A list has an entry on each line, a mapping a line such as name: value, a list of mappings is YAML. A secret is never returned."`
	Secrets []string          `json:"secrets,omitempty" doc:"The secrets that are set. One that a new version of the sink lacks in options and has here is kept."`
	Paused  bool              `json:"paused,omitempty" doc:"Whether its notifications wait."`
}

// Sinks are the sinks that were made at run time.
type Sinks struct {
	Sinks []Sink `json:"sinks"`
}

// Password is the password of the web page.
type Password struct {
	Password string `json:"password"`
}

// Token is the token of a data directory.
type Token struct {
	Token string `json:"token"`
}

// Pause names subscriptions and says until when they pause; without Until they pause until a resume.
type Pause struct {
	Target
	Until time.Time `json:"until,omitzero" doc:"When they are resumed, as 2026-05-01T12:00:00Z. Left out: when /resume restarts them."`
}

// Problem is an error response as RFC 9457 describes it.
type Problem struct {
	// Type is one of the Problem constants, or empty where Status says everything.
	Type   string         `json:"type,omitempty"`
	Title  string         `json:"title,omitempty"`
	Status int            `json:"status"`
	Detail string         `json:"detail,omitempty"`
	Errors []ProblemField `json:"errors,omitempty"`
}

// ProblemField says what is wrong with one part of a request.
type ProblemField struct {
	Message  string `json:"message"`
	Location string `json:"location,omitempty"` // such as body.keywords[0] or query.url
}

// Types of problems that a program may want to tell apart.
const (
	ProblemNotFound     = "urn:vokter:problem:not-found"    // 404: there is no such page, subscription or sink
	ProblemConflict     = "urn:vokter:problem:conflict"     // 409: the current state does not allow it
	ProblemElsewhere    = "urn:vokter:problem:elsewhere"    // 421: another process owns the page, or none does at the moment
	ProblemBusy         = "urn:vokter:problem:busy"         // 503: it was not decided in time; ask again
	ProblemUnavailable  = "urn:vokter:problem:unavailable"  // 503: the pipeline is not ready
	ProblemUnauthorized = "urn:vokter:problem:unauthorized" // 401: the token is missing or wrong
)
