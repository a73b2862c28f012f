package vokter

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/index"
)

// healthStage sends each health event to the sinks for health events. Where a receiver expired
// or recovered, it expires or resumes the subscriptions that depend on it.
type healthStage struct {
	// sinks returns the names of the sinks that get health events.
	sinks     func() []string
	now       func() time.Time
	pageCache receiverPageCache
}

var _ flow.Processor = (*healthStage)(nil)

// Process handles a health event, the sweep of one lane that an event caused, or a wake.
func (h *healthStage) Process(ctx context.Context, tx flow.Tx, m flow.Message) error {
	switch m.Type {
	case flow.TypeHealth:
	case flow.TypeSweep:
		return h.sweep(ctx, tx, m)
	case flow.TypeWake:
		return tx.State(m.Key).Delete(sentName(pipeline.HealthDeadLetter))
	default:
		return m.UnknownType(flow.GroupHealth)
	}
	e, err := flow.HealthFrom(m)
	if err != nil {
		return err
	}
	if e.Event == pipeline.HealthRefused {
		return nil // it concerns whoever sent the command, not the operator
	}
	news, err := h.shouldSend(tx.State(m.Key), e)
	if err != nil {
		return err
	}
	if news && isAboutMessage(e) {
		tx.WakeAt(m.Key, e.Time.Add(resendAfter)) // the wake deletes the state, or it would stay for pages that are gone
	}
	for _, sink := range h.sinks() {
		r := pipeline.Receiver{Sink: sink}
		// A receiver does not get events about itself, and e.Sinks get the event as a timeout
		// notification already.
		if !news || e.Receiver != nil && *e.Receiver == r || slices.Contains(e.Sinks, sink) {
			continue
		}
		if err := emitNotification(tx, e, r); err != nil {
			return err
		}
	}
	expired, resumed := e.Event == pipeline.HealthReceiverExpired, e.Event == pipeline.HealthReceiverRecovered && e.Expired
	if e.Receiver != nil && (expired || resumed) {
		emitSweep(tx, e)
	}
	return nil
}

// Names in the state of an event's key. Values are times, as time.Time.MarshalText writes them.
const (
	nameOffline = "offline" // for HealthKey: when the process went offline
	nameSent    = "sent/"   // + event: when an event that is sent once in resendAfter was last sent
)

func sentName(event pipeline.HealthEvent) string { return nameSent + string(event) }

// resendAfter is how long some events are not sent again: one about a sink for health events, because two
// such sinks that fail would cause events for each other without end, and one about a page
// whose messages cannot be handled, because a source that pushes one such message pushes many.
const resendAfter = time.Hour

// isAboutMessage reports whether e says that a message could not be handled.
func isAboutMessage(e pipeline.Health) bool {
	return e.Event == pipeline.HealthDeadLetter && e.Receiver == nil
}

// shouldSend reports whether e is to be sent, and stores that it was. HealthOffline is sent once until HealthOnline
// follows, however often the process starts in between.
func (h *healthStage) shouldSend(st flow.State, e pipeline.Health) (bool, error) {
	switch {
	case e.Event == pipeline.HealthOffline:
		since, err := loadTime(st, nameOffline)
		if err != nil || !since.IsZero() {
			return false, err
		}
		return true, storeTime(st, nameOffline, e.Time)
	case e.Event == pipeline.HealthOnline:
		return true, st.Delete(nameOffline)
	case isAboutMessage(e) || e.Receiver != nil && slices.Contains(h.sinks(), e.Receiver.Sink):
		name := sentName(e.Event)
		last, err := loadTime(st, name)
		if err != nil || !last.IsZero() && e.Time.Sub(last).Abs() < resendAfter {
			return false, err
		}
		return true, storeTime(st, name, e.Time)
	}
	return true, nil
}

func loadTime(st flow.State, name string) (t time.Time, err error) {
	b, ok, err := st.Get(name)
	if err != nil || !ok {
		return t, err
	}
	if err := t.UnmarshalText(b); err != nil {
		return t, failure.Broken(fmt.Errorf("health: a stored time is damaged: %w", err))
	}
	return t, nil
}

func storeTime(st flow.State, name string, t time.Time) error {
	b, err := t.MarshalText()
	if err != nil {
		return failure.Permanent(err)
	}
	return st.Set(name, b)
}

// emitNotification emits e as a notification to r.
func emitNotification(tx flow.Tx, e pipeline.Health, r pipeline.Receiver) error {
	out, err := flow.Addressed{Receiver: r, Document: e.Document, Notification: pipeline.Notification{
		Status: string(e.Event), URL: e.URL, Diffs: []pipeline.Diff{}, Type: pipeline.NotificationTypeHealth,
		ID: flow.DeriveID("notification", e.ID, r.Sink), Time: e.Time, Reason: e.Reason, Health: &e,
	}}.Message()
	if err != nil {
		return err
	}
	tx.Emit(out)
	return nil
}

// receiverPagesTTL is how long the pages of a lane's receivers are cached. A subscription made in that
// time to a receiver that expired is found by delivery.
const receiverPagesTTL = 10 * time.Second

// receiverPageCache caches the pages of the receivers of each lane. Many receivers of one host may
// expire at once, and the pages of a lane are read once for all of them.
type receiverPageCache struct {
	mu    sync.Mutex
	lanes map[string]*lanePages
}

// lanePages are the pages of one lane, by receiver.
type lanePages struct {
	mu sync.Mutex
	// pages are those with a subscription for a receiver, by receiver, as read at readAt.
	pages  map[string][]string
	readAt time.Time
}

// ofLane returns the cache of lane, an empty one at first.
func (l *receiverPageCache) ofLane(lane string) *lanePages {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lanes == nil {
		l.lanes = make(map[string]*lanePages)
	}
	if l.lanes[lane] == nil {
		l.lanes[lane] = new(lanePages)
	}
	return l.lanes[lane]
}

// emitSweep sends a sweep to every lane, so that the pages of the receiver of e get a command.
// Other processes may own some lanes.
func emitSweep(tx flow.Tx, e pipeline.Health) {
	s := flow.Sweep{Event: e.ID, Time: e.Time, Receiver: e.Receiver.Sink, Reason: e.Reason}
	if e.Event == pipeline.HealthReceiverRecovered {
		s.Resume, s.Reason = true, ""
	}
	tx.EmitAll(s.Message())
}

// sweep sends a command to each page of the receiver in the lane of m. It does so in one
// transaction, so that a sweep that expires and one that resumes cannot overtake each other.
func (h *healthStage) sweep(ctx context.Context, tx flow.Tx, m flow.Message) error {
	s, err := flow.SweepFrom(m)
	if err != nil {
		return err
	}
	l := h.pageCache.ofLane(m.Position[:strings.LastIndex(m.Position, "/")+1])
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := h.now(); l.pages == nil || now.Sub(l.readAt).Abs() > receiverPagesTTL {
		if l.pages, err = pagesByReceiver(ctx, tx); err != nil {
			return err
		}
		l.readAt = now
	}
	for _, page := range l.pages[s.Receiver] {
		if err := emitSweepCommand(tx, s, page); err != nil {
			return err
		}
	}
	return nil
}

// pagesByReceiver returns the pages in the lane of tx, by the receivers of their subscriptions.
func pagesByReceiver(ctx context.Context, tx flow.Tx) (map[string][]string, error) {
	pages := make(map[string][]string)
	for page, st := range tx.Neighbours(flow.GroupIndex) {
		receivers, err := index.Receivers(st)
		if err != nil {
			return nil, err
		}
		for _, r := range receivers {
			pages[r] = append(pages[r], page)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return pages, nil
}

// emitSweepCommand emits the command of s to page. Its ID is derived from s, so that a second handling
// emits the same one.
func emitSweepCommand(tx flow.Tx, s flow.Sweep, page string) error {
	typ, body := flow.TypeExpire, any(flow.ExpireCommand{URL: page, Receiver: s.Receiver, Reason: s.Reason})
	if s.Resume {
		typ, body = flow.TypeResume, flow.ResumeCommand{URL: page, Receiver: s.Receiver}
	}
	m, err := newCommand(page, typ, body, s.Time)
	if err != nil {
		return failure.Permanent(err)
	}
	m.ID = flow.DeriveID("command", s.Event, page)
	tx.Emit(m)
	return nil
}

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
func (r *Router) watchOverdue(ctx context.Context) error {
	w := &watchdog{runID: rand.Text()}
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
		e, ok := w.overdueEvent(r.stages.index.Overdue(), now)
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
