package vokter

import (
	"context"
	"maps"
	"slices"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
)

// List returns what f selects of the pages that are watched or expired, and of the receivers; see
// [inspect.List]. It waits until the Router runs, and fails once Run has ended.
func (r *Router) List(ctx context.Context, f inspect.ListFilter) (inspect.Listing, error) {
	if err := r.readable(ctx); err != nil {
		return inspect.Listing{Pages: []inspect.Page{}, Receivers: []inspect.Receiver{}}, err
	}
	l, err := inspect.List(ctx, r.transport, f, slices.Collect(maps.Keys(r.live.Load().Sinks)))
	return l, r.unlessClosing(err)
}

// Explain says what the last checks of the page of url found, and what became of its last changes
// and of each keyword; see [inspect.Explain]. It waits until the Router runs, and fails once Run
// has ended. Calls wait for each other, so that they take at most one processor from the stages.
func (r *Router) Explain(ctx context.Context, url string, f inspect.ExplainFilter) (inspect.Explanation, error) {
	none := inspect.Explanation{Checks: []inspect.Check{}, Changes: []inspect.Change{}, Keywords: []inspect.Keyword{}}
	if err := r.readable(ctx); err != nil {
		return none, err
	}
	select {
	case r.explaining <- struct{}{}:
		defer func() { <-r.explaining }()
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	e, err := inspect.Explain(ctx, r.transport, r.languages, url, f)
	return e, r.unlessClosing(err)
}

// Summary returns what the Router did since Run began.
func (r *Router) Summary() inspect.Summary {
	s := r.tally.Summary()
	s.Pending = int(r.waiting.Load())
	return s
}

// Gauges returns figures about the Router and its Transport, by the names that docs/metrics.md
// explains. It returns at once, also before Run and after it. A figure that is not known yet is
// left out.
func (r *Router) Gauges() []flow.Gauge {
	ready := 0.0
	if r.Ready() == nil {
		ready = 1
	}
	all := append([]flow.Gauge{
		{Name: "vokter_ready", Help: "1 while the pipeline is at work, and otherwise 0; /readyz says why.", Value: ready},
	}, r.tally.Counts().Gauges()...)
	select {
	case <-r.running:
		due, parked := r.stages.delivery.Backlog(0)
		all = append(all,
			flow.Gauge{Name: "vokter_overdue_pages", Help: "Pages that are checked too late, or were in the last minute.", Value: float64(r.stages.index.Late())},
			flow.Gauge{Name: "vokter_pending_notifications", Help: "Notifications that are still to be delivered.", Value: float64(due + parked)})
		return append(all, r.transport.Gauges()...)
	default:
		if given := r.cfg.Transport; given != nil { // Run opens its own meanwhile
			all = append(all, given.Gauges()...)
		}
		return all
	}
}
