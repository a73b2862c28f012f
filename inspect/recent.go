package inspect

import (
	"github.com/vokter/vokter/pipeline/flow"
)

// RecentFilter selects changes of all pages. Empty fields select all.
type RecentFilter struct {
	// Client selects the changes that notified this client, and only its notifications.
	Client string `json:"client,omitempty"`
	// Sink and Delivery select the changes with a notification to this sink, whose delivery is in this
	// state (one of the Delivery constants), and only these notifications.
	Sink     string `json:"sink,omitempty"`
	Delivery string `json:"state,omitempty"`
	// Tag selects the changes of the documents that a subscription with this tag watches.
	Tag string `json:"tag,omitempty"`
	// Clients restricts the changes to documents that these clients watch, and the notifications to
	// theirs. Nil means no restriction.
	Clients []string `json:"-"`
	// After and Limit select a part of the changes: at most Limit of those behind After, the newest
	// first. A Limit of 0 means all.
	After string `json:"cursor,omitempty"`
	Limit int    `json:"limit,omitempty"`
	// Partial does without the changes that are not read yet, where that takes long: the first call after
	// a start reads the state of all pages.
	Partial bool `json:"partial,omitempty"`
}

// RecentChange is a change of a page.
type RecentChange struct {
	URL   string `json:"url"`
	Title string `json:"title,omitempty"` // of the current version
	// Size is how much changed. It is zero where that is not known yet.
	Size flow.Size `json:"size,omitzero"`
	Change
}

// RecentChanges is a part of the newest changes of all pages, the newest first.
type RecentChanges struct {
	Changes []RecentChange `json:"changes"`
	// Next is the value of RecentFilter.After with which the list goes on. It is empty at the end.
	Next string `json:"next,omitempty"`
	// Partial says that changes are missing, because the state is still being read. It is only set with
	// RecentFilter.Partial.
	Partial bool `json:"partial,omitempty"`
}
