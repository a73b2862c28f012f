package vokter

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// healthStage tells the sinks for health events of each event, and ends or resumes what
// depends on a receiver that expired or opened again.
type healthStage struct {
	// sinks are the names of those that are told.
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
		return t, pipeline.Broken(fmt.Errorf("health: a stored time is damaged: %w", err))
	}
	return t, nil
}

func setTime(st flow.State, name string, t time.Time) error {
	b, err := t.MarshalText()
	if err != nil {
		return pipeline.Permanent(err)
	}
	return st.Set(name, b)
}

// tell emits e as a notification to r.
func tell(tx flow.Tx, e pipeline.Health, r pipeline.Receiver) error {
	out, err := flow.Addressed{Receiver: r, Document: e.Document, Notification: pipeline.Notification{
		Status: string(e.Event), URL: e.URL, Diffs: []pipeline.Diff{}, Type: pipeline.NotificationTypeHealth,
		ID: flow.DeriveID("notification", e.ID, r.ID()), Time: e.Time, Reason: e.Reason, Health: &e,
	}}.Message()
	if err != nil {
		return err
	}
	tx.Emit(out)
	return nil
}
