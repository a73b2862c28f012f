package vokter

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

const (
	// watchdogInterval is the time between two searches for overdue pages.
	watchdogInterval = 30 * time.Second
	// maxOverdueURLs is how many overdue pages an event names.
	maxOverdueURLs = 10
)

// watchdog sends an event when pages are overdue. It sends the next one only after there were
// none.
type watchdog struct {
	// runID makes the IDs of events unique to this run.
	runID        string
	events       uint64
	overdueSince time.Time // since when pages are overdue; zero if none are
}

func newWatchdog() *watchdog { return &watchdog{runID: rand.Text()} }

// overdueEvent returns the event to publish about the overdue pages, and whether there is one.
func (w *watchdog) overdueEvent(overdue []string, now time.Time) (pipeline.Health, bool) {
	switch {
	case len(overdue) == 0:
		w.overdueSince = time.Time{}
		return pipeline.Health{}, false
	case !w.overdueSince.IsZero():
		return pipeline.Health{}, false
	}
	w.overdueSince = now
	w.events++
	return pipeline.Health{
		ID: flow.HealthID(pipeline.HealthOverdue, w.runID, w.events), Event: pipeline.HealthOverdue, Time: now,
		Reason: fmt.Sprintf("%d pages are not checked in time, for example %s", len(overdue), overdue[0]),
		Count:  len(overdue), URLs: overdue[:min(len(overdue), maxOverdueURLs)],
	}, true
}

// watchOverdue looks for overdue pages until ctx is done. While the Router is not ready, for example
// because the disk is full, no page counts as overdue.
func (r *Router) watchOverdue(ctx context.Context, s *stages) error {
	w := newWatchdog()
	tick := time.NewTicker(watchdogInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if r.transport.Ready() != nil {
			continue
		}
		now := r.cfg.Now()
		e, ok := w.overdueEvent(s.index.Overdue(), now)
		if !ok {
			continue
		}
		r.cfg.Logger.Warn("pages are overdue", "pages", e.Count, "for_example", e.URLs[0])
		if err := r.transport.Publish(ctx, flow.HealthMessage(e)); err != nil {
			w.overdueSince = time.Time{} // try again at the next tick
			r.cfg.Logger.Warn("a health event could not be published", "event", e.Event, "error", err)
		}
	}
}
