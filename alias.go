package vokter

import (
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/index"
)

// The words of package pipeline that a program which embeds a Router needs.
type (
	// Subscription says what a client wants to hear about a document.
	Subscription = pipeline.Subscription
	// Digest says for how long the notifications of a subscription are collected.
	Digest = pipeline.Digest
	// View is everything that alters a document's text.
	View = pipeline.View
	// Selector is a CSS selector or a range between two.
	Selector = pipeline.Selector
	// Event is what happened to a keyword.
	Event = pipeline.Event
	// Notification is all that one change says to one subscription at one receiver.
	Notification = pipeline.Notification
	// Diff is one keyword found in one difference.
	Diff = pipeline.Diff
	// Health is a change in how a page, a receiver or the process does.
	Health = pipeline.Health
	// Change carries all differences between two versions of a document.
	Change = pipeline.Change
	// Sink hands notifications to receivers.
	Sink = pipeline.Sink
	// SinkFunc is a function that is a Sink.
	SinkFunc = pipeline.SinkFunc
	// Source brings pages from elsewhere.
	Source = pipeline.Source
	// SourceFunc is a function that is a Source.
	SourceFunc = pipeline.SourceFunc
	// Emit hands over a page.
	Emit = pipeline.Emit
	// Pushed is a page that is handed over.
	Pushed = pipeline.Pushed
	// Fetcher gets pages of some URL schemes.
	Fetcher = pipeline.Fetcher
	// Reader extracts the text of a document.
	Reader = pipeline.Reader
	// Raw is a page to be read.
	Raw = pipeline.Raw
	// Text is what a Reader extracts.
	Text = pipeline.Text
	// Stemmer reduces the words of a language to their stems.
	Stemmer = pipeline.Stemmer
	// Processor handles one message at a time per key.
	Processor = pipeline.Processor
	// Refusal says why a command was not carried out; its Code is one of the Code constants.
	Refusal = index.Refusal
	// Middleware wraps a stage's Processor.
	Middleware = pipeline.Middleware
)

// Never is the interval of what is not fetched, since its pages are pushed.
const Never = pipeline.Never

// The events.
const (
	Added   = pipeline.Added
	Removed = pipeline.Removed
)

// Statuses and types of a Notification.
const (
	StatusOK               = pipeline.StatusOK
	StatusTimeout          = pipeline.StatusTimeout
	NotificationTypeHealth = pipeline.NotificationTypeHealth
)

// Codes of refused commands.
const (
	CodeURL      = index.CodeURL      // the URL is invalid
	CodeKeywords = index.CodeKeywords // no valid keyword
	CodeEvents   = index.CodeEvents   // no event
	CodeConflict = index.CodeConflict // the pair of document and client has a subscription
	CodeFormat   = index.CodeFormat   // another field is invalid
	CodeNotFound = index.CodeNotFound // there is no such subscription
)
