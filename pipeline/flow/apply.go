package flow

import (
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// ListOrigin returns the origin of the subscriptions of the list called name, which was given at run time as a whole.
func ListOrigin(name string) string { return OriginAPI + "/" + name }

// MadeAtRunTime reports whether origin is OriginAPI or a ListOrigin. Only commands of that origin replace such
// subscriptions, and they replace no others. An origin of a configuration takes over what another one left.
func MadeAtRunTime(origin string) bool {
	return origin == OriginAPI || strings.HasPrefix(origin, OriginAPI+"/")
}

// ApplyCommand replaces the subscriptions of Origin on the page of URL by Subscriptions: new ones
// are added, different ones changed, missing ones cancelled. If Client is set, it replaces only
// those of that client.
type ApplyCommand struct {
	URL    string `json:"url"`
	Origin string `json:"origin"`
	Client string `json:"client,omitempty"`
	// Keep keeps the page although it has no subscription. The page is checked every KeepInterval,
	// unless that is Never.
	Keep         bool              `json:"keep,omitempty"`
	KeepInterval pipeline.Interval `json:"keep_interval,omitzero"`
	// Language is the language of the page where Keep is set, as a BCP 47 tag; empty if unknown.
	Language string `json:"language,omitempty"`
	// KeepVersions and KeepFor say, where Keep is set, which versions of the page's documents are
	// kept; 0 means what the process that owns the page is configured for.
	KeepVersions int               `json:"keep_versions,omitempty"`
	KeepFor      pipeline.Duration `json:"keep_for,omitempty"`
	// Expire says, where Keep is set, what becomes of the page where checks of it fail.
	Expire pipeline.Expire `json:"expire,omitzero"`
	// KeepOnly changes no subscription; Subscriptions is empty then.
	KeepOnly      bool                    `json:"keep_only,omitempty"`
	Subscriptions []pipeline.Subscription `json:"subscriptions"`
	// Resume also restarts expired subscriptions that are listed unchanged.
	Resume bool `json:"resume,omitempty"`
	// Spared are clients of which no subscription is cancelled, because an entry of theirs was refused.
	Spared []string `json:"spared,omitempty"`
	// Digest is a hash of Subscriptions where Client is empty. Index keeps it, so that an equal list need not be sent.
	Digest uint64 `json:"digest,omitempty"`
	// Reply asks for a Decision on TopicDecisions: the sender may be another process.
	Reply bool `json:"reply,omitempty"`
	// DryRun changes nothing; the Decision says what would change.
	DryRun bool `json:"dry_run,omitempty"`
}

// Values of Applied.Outcome.
const (
	AppliedCreated   = "created"
	AppliedChanged   = "changed"
	AppliedUnchanged = "unchanged"
	AppliedRemoved   = "removed" // the list does not have it
	AppliedRefused   = "refused" // what was there stays as it is
)

// Applied is what became of one subscription of a list.
type Applied struct {
	// Entry is the number of the subscription in the list, from 1. It is 0 if the list does not have it.
	Entry int `json:"entry,omitempty"`
	// URL, Client and Document say which subscription it is. A refused one may lack some.
	URL      string `json:"url,omitempty"`
	Client   string `json:"client,omitempty"`
	Document string `json:"document,omitempty"`
	// Outcome is one of the Applied constants. Reason says why it was refused, or what else is to be known.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// ApplyCounts are how many subscriptions of a list had each outcome.
type ApplyCounts struct {
	Created   int `json:"created"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Removed   int `json:"removed"`
	Refused   int `json:"refused"`
}

// ApplyReport is what became of a list of subscriptions.
type ApplyReport struct {
	ApplyCounts
	// Subscriptions are those of the list in its order, and then those that were removed, by URL and client.
	Subscriptions []Applied `json:"subscriptions"`
}

// Add adds what became of one subscription.
func (r *ApplyReport) Add(a Applied) {
	switch a.Outcome {
	case AppliedCreated:
		r.Created++
	case AppliedChanged:
		r.Changed++
	case AppliedUnchanged:
		r.Unchanged++
	case AppliedRemoved:
		r.Removed++
	case AppliedRefused:
		r.Refused++
	}
	r.Subscriptions = append(r.Subscriptions, a)
}

// Decision is the result of a command of TypeSubscribe, TypeCancel, TypePause or TypeResume, or of an ApplyCommand, for
// the process that waits for it.
type Decision struct {
	// Command is the ID of the command.
	Command string `json:"command"`
	// Code is 0 if the command succeeded, otherwise one of the Code constants; Reason then says in
	// words for the user why it was refused.
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Applied is what became of the subscriptions of an ApplyCommand.
	Applied []Applied `json:"applied,omitempty"`
}

// Err returns nil if the command succeeded, and otherwise a *Refusal.
func (d Decision) Err() error {
	if d.Code == 0 {
		return nil
	}
	return &Refusal{Code: d.Code, Message: d.Reason}
}

// Message returns d as a message on TopicDecisions about page with the time at.
func (d Decision) Message(page string, at time.Time) Message {
	b := encode(d)
	return Message{ID: DeriveID("decision", d.Command), Topic: TopicDecisions, Key: page, Type: TypeDecision, Subject: page, Time: at,
		Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// DecisionFrom is the inverse of Decision.Message.
func DecisionFrom(m Message) (Decision, error) {
	return decode[Decision](m, "decision")
}
