package sinks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

const (
	// keepLetters is for how long a dead letter is kept.
	keepLetters = 90 * 24 * time.Hour
	// replayBatch bounds the letters that one transaction brings back or forgets, replayBytes
	// how large those that it brings back are together, but for the last; lookBatch bounds
	// those that it looks at.
	replayBatch = 500
	replayBytes = 2 << 20
	lookBatch   = 5000
)

// DeadConfig is what NewDeadLetters needs.
type DeadConfig struct {
	// Now is the clock, time.Now by default.
	Now func() time.Time
	// Observe is told of each message that is kept because it could not be handled.
	Observe flow.Observer
	// Logger hears of letters that are brought back or forgotten; nil means nobody does.
	Logger *slog.Logger
}

// DeadLetters is the processor of TopicDead. It keeps each dead letter in the state of its
// key until it is brought back, 90 days at most.
type DeadLetters struct{ cfg DeadConfig }

var _ flow.Processor = (*DeadLetters)(nil)

// NewDeadLetters returns a DeadLetters.
func NewDeadLetters(cfg DeadConfig) *DeadLetters {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &DeadLetters{cfg}
}

// Process handles a dead letter, a command to bring some back, or a wake.
func (d *DeadLetters) Process(_ context.Context, tx flow.Tx, m flow.Message) error {
	f, err := openFile(tx.State(m.Key))
	if err != nil {
		return err
	}
	switch m.Type {
	case flow.TypeDeadLetter:
		err = d.keep(tx, f, m)
	case flow.TypeReplay:
		err = d.begin(tx, f, m)
	case flow.TypeWake:
		if len(f.Replays) > 0 {
			err = d.replay(tx, f, m.Key)
		} else {
			err = d.forget(tx, f, m.Key)
		}
	default:
		err = m.UnknownType(flow.GroupDead)
	}
	if err != nil {
		return err
	}
	return f.close()
}

// keep stores a letter. One that is there already is replaced, behind the others. The first
// one asks for the wake; each wake asks for the next.
func (d *DeadLetters) keep(tx flow.Tx, f *file, m flow.Message) error {
	var l flow.DeadLetter
	err := json.Unmarshal(m.Body, &l)
	if err = cmp.Or(err, flow.CheckTime(l.Time)); err != nil {
		return pipeline.Permanent(fmt.Errorf("dead letter %s: %w", flow.Clipped(m.ID, 200), err))
	}
	if f.Count == 0 && len(f.Replays) == 0 {
		tx.WakeAt(m.Key, d.cfg.Now().Add(keepLetters))
	}
	known, err := f.add(Letter{ID: m.ID, DeadLetter: l})
	if err != nil || known {
		return err
	}
	if l.Addressed != nil {
		return nil // Delivery tells of notifications itself.
	}
	tx.OnCommit(func() {
		d.cfg.Observe.Note(flow.Observation{Kind: flow.KindUnhandled, URL: pipeline.Redacted(m.Subject), ID: m.ID, Time: l.Time, Text: l.Reason})
	})
	if l.Topic != flow.TopicHealth { // that an event could not be told is not told
		tx.Emit(flow.HealthMessage(pipeline.Health{
			ID:    flow.HealthID(pipeline.HealthDeadLetter, m.Key+" "+m.ID, 0),
			Event: pipeline.HealthDeadLetter, Time: l.Time, URL: pipeline.Redacted(m.Subject), Reason: l.Reason, Count: l.Attempts,
		}))
	}
	return nil
}

// begin takes on a command, which is about the letters that are there now.
func (d *DeadLetters) begin(tx flow.Tx, f *file, m flow.Message) error {
	var c flow.ReplayCommand
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return pipeline.Permanent(fmt.Errorf("replay %s: %w", m.ID, err))
	}
	first, err := f.first()
	if err != nil {
		return err
	}
	f.Replays = append(f.Replays, replay{Filter: c.Filter, From: first, Until: f.Next})
	d.goOn(tx, m.Key)
	return nil
}

// replay goes on with the oldest command.
func (d *DeadLetters) replay(tx flow.Tx, f *file, key string) error {
	chosen, err := f.choose()
	if err != nil {
		return err
	}
	for _, l := range chosen {
		m, err := l.Addressed.Message()
		if err != nil {
			return err
		}
		m.Header[flow.HeaderReplay] = "1"
		tx.Emit(m)
	}
	if len(chosen) > 0 {
		d.log(tx, key, "dead letters are delivered again", len(chosen))
	}
	d.goOn(tx, key)
	return f.remove(chosen)
}

// forget forgets letters that are too old, and asks for a wake when the next one will be.
func (d *DeadLetters) forget(tx flow.Tx, f *file, key string) error {
	now := d.cfg.Now().UTC()
	old, ahead, oldest, err := f.age(now)
	if err != nil {
		return err
	}
	if len(old) > 0 {
		d.log(tx, key, "dead letters are forgotten after 90 days", len(old))
	}
	switch {
	case len(old)+len(ahead) > 0:
		d.goOn(tx, key)
	case !oldest.IsZero():
		tx.WakeAt(key, oldest.Add(keepLetters)) // later than now, since it is not too old
	}
	return errors.Join(f.remove(old), f.date(ahead, now))
}

// goOn asks for a wake at once.
func (d *DeadLetters) goOn(tx flow.Tx, key string) { tx.WakeAt(key, d.cfg.Now(), flow.AtStart) }

func (d *DeadLetters) log(tx flow.Tx, key, text string, n int) {
	tx.OnCommit(func() { d.cfg.Logger.Info(text, "sink", ReceiverOf(key).Sink, "letters", n) })
}
