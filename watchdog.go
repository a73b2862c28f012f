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
	// watchEvery is how often the watchdog looks.
	watchEvery = 30 * time.Second
	// toldURLs is how many overdue pages are named.
	toldURLs = 10
)

// watchdog tells of pages that are not checked in time: once when there are some, and
// again only after there were none.
type watchdog struct {
	// name tells this run from others, in the IDs of events.
	name  string
	n     uint64
	since time.Time // when there began to be some; zero while there are none
}

func newWatchdog() *watchdog { return &watchdog{name: rand.Text()} }

// look returns the event to publish, if any, about the pages that are overdue now.
func (w *watchdog) look(overdue []string, now time.Time) (pipeline.Health, bool) {
	switch {
	case len(overdue) == 0:
		w.since = time.Time{}
		return pipeline.Health{}, false
	case !w.since.IsZero():
		return pipeline.Health{}, false
	}
	w.since = now
	w.n++
	return pipeline.Health{
		ID: flow.HealthID(pipeline.HealthOverdue, w.name, w.n), Event: pipeline.HealthOverdue, Time: now,
		Reason: fmt.Sprintf("%d pages are not checked in time, for example %s", len(overdue), overdue[0]),
		Count:  len(overdue), URLs: overdue[:min(len(overdue), toldURLs)],
	}, true
}

// watch looks for overdue pages until ctx is done. What waits for room on the disk is
// not overdue: Ready tells of that.
func (r *Router) watch(ctx context.Context, s *stages) error {
	w := newWatchdog()
	tick := time.NewTicker(watchEvery)
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
		e, ok := w.look(s.index.Overdue(), now)
		if !ok {
			continue
		}
		r.cfg.Logger.Warn("pages are overdue", "pages", e.Count, "for_example", e.URLs[0])
		if err := r.transport.Publish(ctx, flow.HealthMessage(e)); err != nil {
			w.since = time.Time{} // told the next time
			r.cfg.Logger.Warn("a health event could not be published", "event", e.Event, "error", err)
		}
	}
}
