// Package manage is the management API of a running process: a server over a vokter.Router, whose
// counterpart is package client, and the files by which other processes of the machine find it.
package manage

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Service is what the API serves. A vokter.Router is one.
type Service interface {
	// Versions returns the stored versions of a document of the page of url.
	Versions(ctx context.Context, url string, f inspect.DocumentFilter) (inspect.History, error)
	// Text returns version n of a document of the page of url, or the current one for 0.
	Text(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (inspect.Text, error)
	// Diff compares two versions of a document of the page of url.
	Diff(ctx context.Context, url string, f inspect.DiffFilter) (inspect.Difference, error)
	// Changes returns the changes between the stored versions of a document of the page of url, or the last so many.
	Changes(ctx context.Context, url string, f inspect.DocumentFilter, last int) (inspect.ChangeHistory, error)
	// Occurrences returns where the versions of a document of the page of url contain term.
	Occurrences(ctx context.Context, url, term string, f inspect.OccurrenceFilter) (inspect.Occurrences, error)
	// Explain returns what the last checks of a page found and which notifications followed.
	Explain(ctx context.Context, url string, f inspect.ExplainFilter) (inspect.Explanation, error)
	// Cancel ends the subscriptions of client on the page of url.
	Cancel(ctx context.Context, url, client string) error
	// Subscribe adds a subscription. The current version of its document is the baseline.
	Subscribe(ctx context.Context, s pipeline.Subscription) error
	// Pause ends the subscriptions of client on the page of url until the time until, or until Resume
	// restarts them if that is earlier or until is zero.
	Pause(ctx context.Context, url, client string, until time.Time) error
	// CheckNow makes the page of url due now.
	CheckNow(ctx context.Context, url string) error
	// Resume restarts the expired and paused subscriptions of client on the page of url, or those of all
	// clients where client is empty.
	Resume(ctx context.Context, url, client string) error
	// Retry attempts the pending notifications of the receivers that f selects, and returns
	// these receivers.
	Retry(ctx context.Context, f vokter.RetryFilter) ([]vokter.Retried, error)
	// Replay queues the dead letters that f selects for delivery again and returns how many.
	Replay(ctx context.Context, f flow.DeadFilter) (int, error)
	// Backup writes a consistent copy of the store to w, as vokter.UnpackBackup reads it.
	Backup(ctx context.Context, w io.Writer) error
	// Pages returns a part of the pages, and where the list goes on.
	Pages(ctx context.Context, f inspect.ListFilter) (pages []inspect.Page, next string, err error)
	// Receivers returns receivers with their state.
	Receivers(ctx context.Context, f inspect.ListFilter) ([]inspect.Receiver, error)
	// EachDeadLetter yields the dead letters that f selects, in no order. An error is the last element.
	EachDeadLetter(ctx context.Context, f flow.DeadFilter) iter.Seq2[flow.DeadLetter, error]
	// Deliveries returns the notifications of the last changes of a page with their deliveries.
	Deliveries(ctx context.Context, url string, f inspect.ExplainFilter) ([]inspect.Change, error)
	// Screenshot returns the picture of the page of url that is stored with version n of a document, or
	// with the current one for 0.
	Screenshot(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (inspect.Screenshot, error)
	// Preview returns the page of s as it is now, with the text that s would watch.
	Preview(ctx context.Context, s pipeline.Subscription, source bool) (inspect.Preview, error)
	// AccessClients returns the clients whose tokens may watch and try page, if it is fetched with credentials.
	AccessClients(page string) (clients []string, ok bool)
	// Change replaces the subscription of s.Client to a document by s.
	Change(ctx context.Context, document string, s pipeline.Subscription) error
	// TestSink sends a test message through a sink.
	TestSink(ctx context.Context, sink string) error
	// Recent returns a part of the newest changes of all pages, and where the list goes on.
	Recent(ctx context.Context, f inspect.RecentFilter) (inspect.RecentChanges, error)
	// Observe calls o with what the pipeline does until stop is called.
	Observe(o flow.Observer) (stop func())
	// Ready returns nil while the pipeline works, and otherwise the reason why it does not.
	Ready() error
	// Running is closed when the pipeline has begun to work.
	Running() <-chan struct{}
	// Gauges returns the metrics of the pipeline.
	Gauges() []flow.Gauge
}

var _ Service = (*vokter.Router)(nil)

// lanesOf returns the lanes in gauges, or nil if there are none.
func lanesOf(gauges []flow.Gauge) *client.Lanes {
	var l client.Lanes
	for _, g := range gauges {
		switch g.Name {
		case flow.GaugeLanes:
			l.All = int(g.Value)
		case flow.GaugeLanesOwned:
			l.Owned = int(g.Value)
		case flow.GaugeLanesRestoring:
			l.Restoring = int(g.Value)
		}
	}
	if l.All == 0 {
		return nil
	}
	return &l
}
