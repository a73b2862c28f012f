package sinks

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Attempt is one attempt to hand a notification to its receiver.
type Attempt struct {
	Receiver     pipeline.Receiver
	Notification pipeline.Notification
	// Number tells the attempts of one receiver apart.
	Number uint64

	slow  bool
	trace string
}

// result is the body of typeResult.
type result struct {
	Attempt uint64 `json:"attempt"`
	Outcome
}

// Result returns the message that tells Delivery.Process how a ended; err is what
// Sink.Deliver returned. It goes to the lane of its key through a pipeline.Poster.
func (a Attempt) Result(err error) pipeline.Message {
	body, merr := json.Marshal(result{Attempt: a.Number, Outcome: OutcomeOf(err)})
	if merr != nil {
		panic("sinks: result: " + merr.Error()) // every field is encodable
	}
	m := pipeline.Message{
		ID:    pipeline.DeriveID("delivery", a.Notification.ID, strconv.FormatUint(a.Number, 10)),
		Topic: pipeline.TopicNotifications, Key: a.Receiver.ID(), Type: typeResult,
		Subject: a.Notification.URL, Body: body,
	}
	if a.trace != "" {
		m.Header = map[string]string{pipeline.HeaderTrace: a.trace}
	}
	return m
}

// work is the handling of one message: what it read, and what it will do.
type work struct {
	d   *Delivery
	tx  pipeline.Tx
	key string
	now time.Time
	st  state
	q   Queue
}

func (d *Delivery) open(tx pipeline.Tx, key string) (*work, error) {
	w := &work{d: d, tx: tx, key: key, now: d.cfg.Now().UTC(), st: state{tx.State(key)}}
	var err error
	w.q, err = w.st.queue()
	return w, err
}

// step applies ev, does what follows from it and stores the queue.
func (w *work) step(ev Event) error {
	before := w.q
	q, acts := w.d.cfg.Policy.Apply(before, ev)
	// Before anything is handed out, so that an attempt is known before it can end.
	w.tx.OnCommit(func() { w.d.book.set(w.key, q) })
	w.q = q
	forgotten, dead := false, 0
	for _, act := range acts {
		var err error
		switch act := act.(type) {
		case Send:
			err = w.send(act)
		case Done:
			err = w.done(act)
		case Dead:
			dead++
			err = w.dead(act)
		case Prune:
			forgotten, err = w.prune(act)
		case Wake:
			w.wake(act, forgotten)
		}
		if err != nil {
			return err
		}
	}
	if r, ok := ev.(Resulted); ok {
		w.log(before, r.Outcome, dead)
	}
	switch {
	case forgotten:
		return w.st.Delete(nameQueue)
	case q == before:
		return nil
	}
	return w.st.write(nameQueue, q)
}

// send begins an attempt. What the receiver is shown must be durable first, with all that
// led to it: after a power cut it might come out differently under the same ID.
func (w *work) send(s Send) error {
	pipeline.SyncTx(w.tx)
	p, err := w.st.pending(s.Seq)
	if err != nil {
		return err
	}
	a := Attempt{
		Receiver: p.Addressed.Receiver, Notification: p.Addressed.Notification,
		Number: s.Number, slow: s.Slow, trace: p.Trace,
	}
	w.tx.OnCommit(func() { w.d.hand(a) })
	return nil
}

// done keeps the ID as known, and notes when it may be forgotten.
func (w *work) done(a Done) error {
	p, err := w.st.pending(a.Seq)
	if err != nil {
		return err
	}
	n := p.Addressed.Notification
	w.observe(pipeline.KindDelivered, p.Addressed, "")
	return errors.Join(w.st.Delete(pendingName(a.Seq)), w.st.done(n.ID, w.now))
}

// dead gives a notification up. Its ID is forgotten, so that it can be brought back.
func (w *work) dead(a Dead) error {
	p, err := w.st.pending(a.Seq)
	if err != nil {
		return err
	}
	n := p.Addressed.Notification
	letter := pipeline.DeadLetter{Reason: a.Reason, Time: w.now, Attempts: a.Attempts, Addressed: &p.Addressed}
	w.tx.Emit(letter.Message(n.ID, w.key, n.URL))
	w.observe(pipeline.KindDead, p.Addressed, a.Reason)
	return errors.Join(w.st.Delete(pendingName(a.Seq)), w.st.Delete(nameKnown+n.ID))
}

// prune forgets old IDs, and reports whether nothing at all is left of the receiver.
func (w *work) prune(a Prune) (forgotten bool, err error) {
	left, err := w.st.prune(a.Before)
	return !left && w.q.Pending() == 0, err
}

func (w *work) wake(a Wake, forgotten bool) {
	switch {
	case forgotten:
		w.tx.WakeAt(w.key, time.Time{})
	case a.AtStart:
		w.tx.WakeAt(w.key, a.At, pipeline.AtStart)
	default:
		w.tx.WakeAt(w.key, a.At)
	}
}

func (w *work) observe(kind string, a pipeline.Addressed, text string) {
	page, err := pipeline.CanonicalURL(a.Notification.URL)
	if err != nil {
		page = a.Notification.URL
	}
	w.tx.OnCommit(func() {
		w.d.cfg.Observe.Note(pipeline.Observation{
			Kind: kind, Page: page, Document: a.Document, URL: a.Notification.URL,
			ID: a.Notification.ID, N: len(a.Notification.Diffs), Time: w.now, Text: text,
		})
	})
}

// log tells of what changed for the receiver. Its target may be a secret and is left out.
func (w *work) log(before Queue, o Outcome, dead int) {
	sink, _, _ := strings.Cut(w.key, " ")
	q, now, log := w.q, w.now, w.d.cfg.Logger.With("sink", sink)
	w.tx.OnCommit(func() {
		switch {
		case o.Delivered && before.Failures > 0:
			log.Info("a receiver takes notifications again", "failed_for", now.Sub(before.FailingSince), "attempts", before.Failures)
		case dead > 0:
			log.Error("notifications were given up", "dead", dead, "reason", o.Reason)
		case q.Failures > before.Failures && o.Reason != before.Reason:
			log.Warn("a delivery failed and will be tried again", "reason", o.Reason, "next", q.Due)
		}
	})
}
