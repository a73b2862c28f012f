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

// healthStage tells the sinks for health events of each event, and ends or resumes what
// depends on a receiver that expired or opened again.
type healthStage struct {
	// sinks returns the names of the sinks that get health events.
	sinks func() []string
	now   func() time.Time
	seen  lookout
}

var _ flow.Processor = (*healthStage)(nil)

// Process handles one event, or what follows from one in a lane.
func (h *healthStage) Process(ctx context.Context, tx flow.Tx, m flow.Message) error {
	switch m.Type {
	case flow.TypeHealth:
	case flow.TypeSweep:
		return h.sweep(ctx, tx, m)
	case flow.TypeWake:
		return tx.State(m.Key).Delete(toldOf(pipeline.HealthDeadLetter))
	default:
		return m.UnknownType(flow.GroupHealth)
	}
	e, err := flow.HealthFrom(m)
	if err != nil {
		return err
	}
	if e.Event == pipeline.HealthRefused {
		return nil // that is for who sent the command, not for who runs the program
	}
	news, err := h.news(tx.State(m.Key), e)
	if err != nil {
		return err
	}
	if news && ofMessage(e) {
		tx.WakeAt(m.Key, e.Time.Add(quiet)) // or pages that came and went would add up
	}
	for _, sink := range h.sinks() {
		r := pipeline.Receiver{Sink: sink}
		// A receiver would be told of its own silence, or twice that a page was given up.
		if !news || e.Receiver != nil && *e.Receiver == r || slices.Contains(e.Sinks, sink) {
			continue
		}
		if err := tell(tx, e, r); err != nil {
			return err
		}
	}
	expired, resumed := e.Event == pipeline.HealthReceiverExpired, e.Event == pipeline.HealthReceiverRecovered && e.Expired
	if e.Receiver != nil && (expired || resumed) {
		broadcast(tx, e)
	}
	return nil
}

// Names in the state of an event's key. Values are times, as time.Time.MarshalText writes them.
const (
	nameOffline = "offline" // of HealthKey: since when the process is
	nameTold    = "told/"   // + event that is told once in quiet: when it last was
)

func toldOf(event pipeline.HealthEvent) string { return nameTold + string(event) }

// quiet is for how long an event about a sink for health events is not told again: two that
// fail in turns would keep each other going. Nor are further messages of one page that could
// not be handled: whoever pushes one such page pushes many.
const quiet = time.Hour

// ofMessage reports whether e says that a message could not be handled.
func ofMessage(e pipeline.Health) bool {
	return e.Event == pipeline.HealthDeadLetter && e.Receiver == nil
}

// news reports whether e is to be told. The process says once that it is offline, however
// often it starts meanwhile.
func (h *healthStage) news(st flow.State, e pipeline.Health) (bool, error) {
	switch {
	case e.Event == pipeline.HealthOffline:
		since, err := getTime(st, nameOffline)
		if err != nil || !since.IsZero() {
			return false, err
		}
		return true, setTime(st, nameOffline, e.Time)
	case e.Event == pipeline.HealthOnline:
		return true, st.Delete(nameOffline)
	case ofMessage(e) || e.Receiver != nil && slices.Contains(h.sinks(), e.Receiver.Sink):
		name := toldOf(e.Event)
		last, err := getTime(st, name)
		if err != nil || !last.IsZero() && e.Time.Sub(last).Abs() < quiet {
			return false, err
		}
		return true, setTime(st, name, e.Time)
	}
	return true, nil
}

func getTime(st flow.State, name string) (t time.Time, err error) {
	b, ok, err := st.Get(name)
	if err != nil || !ok {
		return t, err
	}
	if err := t.UnmarshalText(b); err != nil {
		return t, failure.Broken(fmt.Errorf("health: a stored time is damaged: %w", err))
	}
	return t, nil
}

func setTime(st flow.State, name string, t time.Time) error {
	b, err := t.MarshalText()
	if err != nil {
		return failure.Permanent(err)
	}
	return st.Set(name, b)
}

// tell emits e as a notification to r.
func tell(tx flow.Tx, e pipeline.Health, r pipeline.Receiver) error {
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

// lookAgain is after what time the pages of receivers are looked up again. What is
// subscribed meanwhile to a receiver that expired is found by delivery.
const lookAgain = 10 * time.Second

// lookout is what was seen of each lane, by the name of the lane. Many receivers of one host
// may expire at once, and one look at a lane's pages is enough for them.
type lookout struct {
	mu    sync.Mutex
	lanes map[string]*laneLook
}

// laneLook is what was seen of one lane.
type laneLook struct {
	mu sync.Mutex
	// pages are those that each receiver means something to, as they were at at.
	pages map[string][]string
	at    time.Time
}

// of returns the look at lane, an empty one if there was none.
func (l *lookout) of(lane string) *laneLook {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lanes == nil {
		l.lanes = make(map[string]*laneLook)
	}
	if l.lanes[lane] == nil {
		l.lanes[lane] = new(laneLook)
	}
	return l.lanes[lane]
}

// broadcast asks every lane to tell its pages what became of the receiver of e: their
// states may be kept by other processes.
func broadcast(tx flow.Tx, e pipeline.Health) {
	s := flow.Sweep{Event: e.ID, Time: e.Time, Receiver: e.Receiver.Sink, Reason: e.Reason}
	if e.Event == pipeline.HealthReceiverRecovered {
		s.Resume, s.Reason = true, ""
	}
	tx.EmitAll(s.Message())
}

// sweep tells the pages in the lane of m, all in one transaction: were it split, a sweep that
// ends and one that resumes could overtake each other.
func (h *healthStage) sweep(ctx context.Context, tx flow.Tx, m flow.Message) error {
	s, err := flow.SweepFrom(m)
	if err != nil {
		return err
	}
	l := h.seen.of(m.Position[:strings.LastIndex(m.Position, "/")+1])
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := h.now(); l.pages == nil || now.Sub(l.at).Abs() > lookAgain {
		if l.pages, err = receivedBy(ctx, tx); err != nil {
			return err
		}
		l.at = now
	}
	for _, page := range l.pages[s.Receiver] {
		if err := tellPage(tx, s, page); err != nil {
			return err
		}
	}
	return nil
}

// receivedBy finds out which pages in the lane of tx each receiver means something to.
func receivedBy(ctx context.Context, tx flow.Tx) (map[string][]string, error) {
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

// tellPage emits the command to page that follows from s, with an ID that follows from it too.
func tellPage(tx flow.Tx, s flow.Sweep, page string) error {
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
