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

// Service is what the API calls. The methods are those of vokter.Router, which documents them.
type Service interface {
	Versions(ctx context.Context, url string, f inspect.DocumentFilter) (inspect.History, error)
	Text(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (inspect.Text, error)
	Diff(ctx context.Context, url string, f inspect.DiffFilter) (inspect.Difference, error)
	Changes(ctx context.Context, url string, f inspect.DocumentFilter, last int) (inspect.ChangeHistory, error)
	Occurrences(ctx context.Context, url, term string, f inspect.OccurrenceFilter) (inspect.Occurrences, error)
	Explain(ctx context.Context, url string, f inspect.ExplainFilter) (inspect.Explanation, error)
	Cancel(ctx context.Context, url, client string) error
	Subscribe(ctx context.Context, s pipeline.Subscription) error
	ApplyList(ctx context.Context, l vokter.SubscriptionList) (flow.ApplyReport, error)
	Pause(ctx context.Context, url, client string, until time.Time) error
	CheckNow(ctx context.Context, url string) error
	Resume(ctx context.Context, url, client string) error
	Retry(ctx context.Context, f flow.RetryFilter) ([]flow.Retried, error)
	Replay(ctx context.Context, f flow.DeadFilter) (int, error)
	Backup(ctx context.Context, w io.Writer) error
	Pages(ctx context.Context, f inspect.ListFilter) (pages []inspect.Page, next string, err error)
	Receivers(ctx context.Context, f inspect.ListFilter) ([]inspect.Receiver, error)
	EachDeadLetter(ctx context.Context, f flow.DeadFilter) iter.Seq2[flow.DeadLetter, error]
	Deliveries(ctx context.Context, url string, f inspect.ExplainFilter) ([]inspect.Change, error)
	Screenshot(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (inspect.Screenshot, error)
	Preview(ctx context.Context, s pipeline.Subscription, source bool) (inspect.Preview, error)
	AccessClients(page string) (clients []string, ok bool)
	Change(ctx context.Context, document string, s pipeline.Subscription) error
	TestSink(ctx context.Context, sink string) error
	Recent(ctx context.Context, f inspect.RecentFilter) (inspect.RecentChanges, error)
	Observe(o flow.Observer) (stop func())
	Ready() error
	Running() <-chan struct{}
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
