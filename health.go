package vokter

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/index"
)

// healthStage tells the sinks for health events of each event, and ends or resumes what
// depends on a receiver that expired or opened again.
type healthStage struct {
	// sinks are the names of those that are told.
	sinks func() []string
	// states are those of group index.
	states func() iter.Seq2[string, pipeline.State]
	now    func() time.Time

	mu sync.Mutex
	// pages are those that each receiver means something to, as they were at at: many
	// receivers of one host may expire at once, and one look at all pages is enough for them.
	pages map[string][]string
	at    time.Time
}

// lookAgain is after what time the pages of receivers are looked up again. What is
// subscribed meanwhile to a receiver that expired is found by delivery.
const lookAgain = 10 * time.Second

var _ pipeline.Processor = (*healthStage)(nil)

// Process handles one event.
func (h *healthStage) Process(ctx context.Context, tx pipeline.Tx, m pipeline.Message) error {
	if m.Type != pipeline.TypeHealth {
		return pipeline.Broken(fmt.Errorf("health: the type %q is not known", m.Type))
	}
	e, err := pipeline.HealthFrom(m)
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
	for _, sink := range h.sinks() {
		r := pipeline.Receiver{Sink: sink}
		if !news || e.Receiver != nil && *e.Receiver == r {
			continue // it would be told of its own silence
		}
		if err := tell(tx, e, r); err != nil {
			return err
		}
	}
	switch {
	case e.Receiver == nil:
	case e.Event == pipeline.HealthReceiverExpired:
		return h.expire(ctx, tx, e)
	case e.Event == pipeline.HealthReceiverRecovered && e.Expired:
		return h.resume(ctx, tx, e)
	}
	return nil
}

// Names in the state of an event's key. Values are times, as time.Time.MarshalText writes them.
const (
	nameOffline = "offline" // of HealthKey: since when the process is
	nameTold    = "told/"   // + event, of a receiver that is told of health itself: when it last was
)

// quiet is for how long an event about a sink for health events is not told again: two that
// fail in turns would keep each other going.
const quiet = time.Hour

// news reports whether e is to be told. The process says once that it is offline, however
// often it starts meanwhile.
func (h *healthStage) news(st pipeline.State, e pipeline.Health) (bool, error) {
	switch {
	case e.Event == pipeline.HealthOffline:
		since, err := getTime(st, nameOffline)
		if err != nil || !since.IsZero() {
			return false, err
		}
		return true, setTime(st, nameOffline, e.Time)
	case e.Event == pipeline.HealthOnline:
		return true, st.Delete(nameOffline)
	case e.Receiver != nil && slices.Contains(h.sinks(), e.Receiver.Sink):
		name := nameTold + string(e.Event)
		last, err := getTime(st, name)
		if err != nil || !last.IsZero() && e.Time.Sub(last).Abs() < quiet {
			return false, err
		}
		return true, setTime(st, name, e.Time)
	}
	return true, nil
}

func getTime(st pipeline.State, name string) (t time.Time, err error) {
	b, ok, err := st.Get(name)
	if err != nil || !ok {
		return t, err
	}
	if err := t.UnmarshalText(b); err != nil {
		return t, pipeline.Broken(fmt.Errorf("health: a stored time is damaged: %w", err))
	}
	return t, nil
}

func setTime(st pipeline.State, name string, t time.Time) error {
	b, err := t.MarshalText()
	if err != nil {
		return pipeline.Permanent(err)
	}
	return st.Set(name, b)
}

// tell emits e as a notification to r.
func tell(tx pipeline.Tx, e pipeline.Health, r pipeline.Receiver) error {
	out, err := pipeline.Addressed{Receiver: r, Document: e.Document, Notification: pipeline.Notification{
		Status: string(e.Event), URL: e.URL, Diffs: []pipeline.Diff{}, Type: pipeline.NotificationTypeHealth,
		ID: pipeline.DeriveID("notification", e.ID, r.ID()), Time: e.Time, Reason: e.Reason, Health: &e,
	}}.Message()
	if err != nil {
		return err
	}
	tx.Emit(out)
	return nil
}

// expire tells every page that lost a receiver of a subscription.
func (h *healthStage) expire(ctx context.Context, tx pipeline.Tx, e pipeline.Health) error {
	id := e.Receiver.ID()
	return h.concerned(ctx, id, func(page string) error {
		return emitCommand(tx, e, page, pipeline.TypeExpire, pipeline.ExpireCommand{URL: page, Receiver: id, Reason: e.Reason})
	})
}

// resume begins anew what ended with the receiver.
func (h *healthStage) resume(ctx context.Context, tx pipeline.Tx, e pipeline.Health) error {
	id := e.Receiver.ID()
	return h.concerned(ctx, id, func(page string) error {
		return emitCommand(tx, e, page, pipeline.TypeResume, pipeline.ResumeCommand{URL: page, Receiver: id})
	})
}

// concerned calls f with every page that receiver means something to.
func (h *healthStage) concerned(ctx context.Context, receiver string, f func(page string) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pages == nil || h.now().Sub(h.at).Abs() > lookAgain {
		if err := h.look(ctx); err != nil {
			return err
		}
	}
	for _, page := range h.pages[receiver] {
		if err := f(page); err != nil {
			return err
		}
	}
	return nil
}

// look finds out which pages each receiver means something to.
func (h *healthStage) look(ctx context.Context) error {
	pages := make(map[string][]string)
	for page, st := range h.states() {
		receivers, err := index.Receivers(st)
		if err != nil {
			return err
		}
		for _, r := range receivers {
			pages[r] = append(pages[r], page)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	h.pages, h.at = pages, h.now()
	return nil
}

// emitCommand emits a command that follows from e, with an ID that follows from it too.
func emitCommand(tx pipeline.Tx, e pipeline.Health, page, typ string, body any) error {
	m, err := newCommand(page, typ, body, e.Time)
	if err != nil {
		return pipeline.Permanent(err)
	}
	m.ID = pipeline.DeriveID("command", e.ID, page)
	tx.Emit(m)
	return nil
}
