package fetch

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// health tells when the process goes offline and when it comes back.
type health struct {
	tracker *tracker
	life    string // names this process in IDs
	told    atomic.Bool

	mu    sync.Mutex // held while it is told
	n     uint64     // of the last event
	since time.Time  // when what was last told to be offline began
}

// newHealth begins where an earlier process was offline, if since is not zero.
func newHealth(since time.Time) *health {
	h := &health{tracker: newTracker(), life: rand.Text()}
	if !since.IsZero() {
		h.takeOver(since)
	}
	return h
}

// takeOver begins where an earlier process was offline since since.
func (h *health) takeOver(since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told.Load() {
		return
	}
	h.tracker.goOffline()
	h.since = since
	h.told.Store(true)
}

// TakeOver says what Config.OfflineSince does, where that is known only later: when the lane
// is gained whose process was offline.
func (s *Stage) TakeOver(since time.Time) { s.health.takeOver(since) }

// tracked reports whether the check of j says anything about the network: a page without a
// host, or one that is not fetched, does not.
func tracked(j *job) bool { return j.busy == nil && j.host.name != j.req.Page }

// weigh ends the check of j, which found outcomes, and marks those that say nothing about the
// page because the process is offline. That it is, or is no more, is told first.
func (s *Stage) weigh(ctx context.Context, j *job, outcomes []flow.Outcome) {
	r := resultOf(outcomes)
	offline := s.health.tracker.end(j.host.name, j.req, r, s.cfg.Now())
	for i := range outcomes {
		outcomes[i].Offline = offline && r == failing
	}
	if offline != s.health.told.Load() {
		s.announce(ctx)
	}
}

// announce tells how the process does, if that is not what was told last. An event that
// cannot be published is tried again with the next check.
func (s *Stage) announce(ctx context.Context) {
	h := s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	offline, run := h.tracker.state()
	if offline == h.told.Load() {
		return
	}
	e := pipeline.Health{Event: pipeline.HealthOnline, Time: s.cfg.Now(), Since: h.since, Reason: "a host answers again"}
	if offline {
		e.Event, e.Since, e.Count, e.URLs = pipeline.HealthOffline, run.since, run.hosts, run.pages
		e.Reason = fmt.Sprintf("%d hosts failed one after the other, and no other answered", run.hosts)
	}
	e.ID = flow.HealthID(e.Event, h.life, h.n+1)
	if err := s.cfg.Publisher.Publish(ctx, flow.HealthMessage(e)); err != nil {
		if ctx.Err() == nil {
			s.cfg.Logger.Error("a health event could not be published; it is tried again with the next check", "event", e.Event, "err", err)
		}
		return
	}
	h.n++
	h.since = run.since
	h.told.Store(offline)
	if offline {
		s.cfg.Logger.Warn("offline: nothing counts against pages until a host answers", "hosts", run.hosts, "pages", run.pages)
	} else {
		s.cfg.Logger.Info("online again", "offline_since", e.Since)
	}
}
