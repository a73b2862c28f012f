package delivery

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/txtest"
)

const remember = 100 * time.Hour

// simulation drives a Delivery and its DeadLetters with a virtual clock and random events, and checks
// the results against a model.
type simulation struct {
	t    *testing.T
	seed uint64
	r    *rand.Rand
	// now is the clock, latest the latest time that it showed.
	now, latest time.Time

	store *txtest.Store
	d     *Delivery
	dead  deadLetterSimulation
	// inFlight are the attempts handed out and not ended, posted the results that were not
	// handled yet. A crash loses both.
	inFlight map[string]Attempt
	posted   map[string][]flow.Message
	// starting are the wakes of the start that were not handled yet.
	starting []flow.Message

	receivers []string
	// sinks say how many notifications the receivers take in one attempt.
	sinks map[string]pipeline.Sink
	sent  []flow.Message
	// queue is what each receiver still has to get, in order.
	queue map[string][]string
	// ended says how a notification ended, by the kind of its observation, and endedAt when.
	ended   map[string]string
	endedAt map[string]time.Time
	// incarnations counts the subscriptions of each receiver that were withdrawn.
	incarnations map[string]int
	withdrawn    map[string]bool
	cancelled    map[string]time.Time
	// subscriptionOf is the subscription of each notification; unmarked are those that came after
	// the withdrawal of theirs was forgotten.
	subscriptionOf map[string]string
	unmarked       map[string]bool
	// lastHealth is the last health event of a receiver, deadReported whether a dead letter was
	// reported since the last success, healthCounts how often each event came.
	lastHealth   map[string]pipeline.HealthEvent
	deadReported map[string]bool
	healthCounts map[pipeline.HealthEvent]int
	healthIDs    map[string]bool
	replayed     int
	// batched counts the notifications that were sent behind others in one attempt.
	batched int

	// observed is what was observed with the last commit.
	observed []flow.Observation
	attempts int
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	w := &simulation{
		t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 1)), now: t0, latest: t0,
		store: txtest.New(), dead: deadLetterSimulation{txtest.New()}, posted: make(map[string][]flow.Message),
		queue: make(map[string][]string), ended: make(map[string]string), endedAt: make(map[string]time.Time),
		sinks: make(map[string]pipeline.Sink), incarnations: make(map[string]int), withdrawn: make(map[string]bool), cancelled: make(map[string]time.Time), subscriptionOf: make(map[string]string), unmarked: make(map[string]bool), lastHealth: make(map[string]pipeline.HealthEvent),
		deadReported: make(map[string]bool), healthCounts: make(map[pipeline.HealthEvent]int), healthIDs: make(map[string]bool),
	}
	for i := range 1 + w.r.IntN(4) {
		key := fmt.Sprintf("r%d", i)
		w.receivers = append(w.receivers, key)
		w.sinks[key] = batchSink{1 + 2*i, 1}
	}
	w.start()
	return w
}

func (w *simulation) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

// start starts a process. Wakes that an earlier one did not handle come again.
func (w *simulation) start() {
	w.inFlight = make(map[string]Attempt)
	w.posted = make(map[string][]flow.Message)
	w.d = NewDelivery(Config{
		Sinks:  w.sinks,
		Policy: Policy{DeadAfter: 10 * time.Hour, ExpireAfter: 20 * time.Hour, Remember: remember},
		Now:    func() time.Time { return w.now }, Jitter: w.r.Float64, Hand: w.startAttempt,
		Observe: func(o flow.Observation) { w.observed = append(w.observed, o); w.checkEnd(o) },
	})
	w.starting = append(w.starting, w.store.Start(w.now)...)
}

// startWakes handles the wakes of the start, which may come after other messages.
func (w *simulation) startWakes() {
	if len(w.starting) == 0 {
		return
	}
	for len(w.starting) > 0 {
		m := w.starting[0]
		w.starting = w.starting[1:]
		w.handle(m)
	}
	total := 0
	for _, q := range w.queue {
		total += len(q)
	}
	if due, parked := w.d.Backlog(time.Hour); due+parked != total {
		w.fatalf("after the start the backlog is %d+%d, want %d", due, parked, total)
	}
}

// mayBeForgotten reports whether what happened at at may be forgotten.
func (w *simulation) mayBeForgotten(at time.Time) bool { return w.latest.Sub(at) >= remember }

func (w *simulation) startAttempt(a Attempt) {
	key := a.Receiver.Sink
	if other, ok := w.inFlight[key]; ok {
		w.fatalf("%s: attempt %d begins while %d is in flight", key, a.Number, other.Number)
	}
	if len(w.posted[key]) > 0 {
		w.fatalf("%s: attempt %d begins before a result was handled", key, a.Number)
	}
	limit, _ := registry.BatchOf(w.sinks[key])
	if len(a.Notifications) > limit {
		w.fatalf("%s: %d notifications are sent at once, want %d at most", key, len(a.Notifications), limit)
	}
	for i, n := range a.Notifications {
		if q := w.queue[key]; i >= len(q) || q[i] != n.ID {
			w.fatalf("%s: %s is sent as number %d, want the first of %v", key, n.ID, i, q)
		}
		if w.isWithdrawn(n.ID) {
			w.fatalf("%s: %s is sent after its subscription was cancelled", key, n.ID)
		}
	}
	w.batched += len(a.Notifications) - 1
	w.inFlight[key] = a
	w.attempts++
}

// isWithdrawn reports whether the subscription of a notification was cancelled, and that
// was not forgotten before it came.
func (w *simulation) isWithdrawn(id string) bool {
	return w.withdrawn[w.subscriptionOf[id]] && !w.unmarked[id]
}

// handle processes m, now and then in a transaction that is lost first, and updates the model with
// the commit.
func (w *simulation) handle(m flow.Message) {
	for w.r.IntN(5) == 0 {
		before, attempts := poolSnapshot(w.d.pool)
		if err := w.d.Process(w.t.Context(), w.store.Begin(), m); err != nil {
			w.fatalf("%s: %v", m.Type, err)
		}
		if after, now := poolSnapshot(w.d.pool); !maps.Equal(after, before) || !maps.Equal(now, attempts) {
			w.fatalf("%s: a transaction that was not committed left a trace", m.Type)
		}
	}
	tx := w.store.Begin()
	if err := w.d.Process(w.t.Context(), tx, m); err != nil {
		w.fatalf("%s: %v", m.Type, err)
	}
	if m.Type == typeResult && !tx.Synced() {
		w.fatalf("the commit of a result need not be durable")
	}
	handed := w.attempts
	w.observed = nil
	tx.Commit()
	if w.attempts > handed && !tx.Synced() {
		w.fatalf("an attempt begins before its notification is durable")
	}
	w.checkEmitted(m.Key, tx.Emitted())
}

// poolSnapshot returns what a pool knows, without the attempts of transactions that may be undone.
func poolSnapshot(p *pool) (map[string]receiverInfo, map[string]stored.Lease[uint64, *inFlightAttempt]) {
	attempts := make(map[string]stored.Lease[uint64, *inFlightAttempt])
	p.attempts.Each(func(receiver string, l stored.Lease[uint64, *inFlightAttempt]) { attempts[receiver] = l })
	return maps.Clone(p.receivers), attempts
}

// checkEnd checks the end of a notification, and takes it out of its receiver's queue.
func (w *simulation) checkEnd(o flow.Observation) {
	if o.Kind == flow.KindAttempt {
		return
	}
	var key string
	for _, m := range w.sent {
		if m.ID == o.ID {
			key = m.Key
		}
	}
	i := 0
	if o.Kind == flow.KindDropped {
		// One that comes after its subscription was cancelled is dropped where it stands.
		i = max(slices.Index(w.queue[key], o.ID), 0)
		if i != 0 && i != len(w.queue[key])-1 {
			w.fatalf("%s: %s is dropped out of the middle of %v", key, o.ID, w.queue[key])
		}
		if !w.isWithdrawn(o.ID) {
			w.fatalf("%s: %s is dropped, but its subscription stands", key, o.ID)
		}
	}
	if q := w.queue[key]; i >= len(q) || q[i] != o.ID {
		w.fatalf("%s: %s is %s, want the first of %v", key, o.ID, o.Kind, q)
	}
	if o.Kind == flow.KindDead && w.isWithdrawn(o.ID) {
		w.fatalf("%s: %s is dead, but its subscription was cancelled", key, o.ID)
	}
	w.queue[key] = slices.Delete(slices.Clone(w.queue[key]), i, i+1)
	w.ended[o.ID] = o.Kind
	w.endedAt[o.ID] = w.now
}

// checkEmitted compares what a commit emitted with what it did.
func (w *simulation) checkEmitted(key string, ms []flow.Message) {
	var dead []string
	for _, o := range w.observed {
		if o.Kind == flow.KindDead {
			dead = append(dead, o.ID)
		}
	}
	var letters []string
	expired := false
	for _, m := range ms {
		switch m.Topic {
		case flow.TopicDead:
			letters = append(letters, w.storeLetter(m))
		case flow.TopicHealth:
			w.checkHealth(key, m)
		case flow.TopicDocuments:
			var c flow.ExpireCommand
			if err := json.Unmarshal(m.Body, &c); err != nil || m.Type != flow.TypeExpire || m.Key != "https://example.com/" || c.Receiver != key {
				w.fatalf("got the command %s of %q for %s: %s", m.Type, m.Key, key, m.Body)
			}
			expired = true
		}
	}
	if !slices.Equal(letters, dead) {
		w.fatalf("%s: the dead are %v, their letters %v", key, dead, letters)
	}
	if want := len(dead) > 0 && w.lastHealth[key] == pipeline.HealthReceiverExpired; expired != want {
		w.fatalf("%s: the page is told that the receiver is expired: %v, want %v", key, expired, want)
	}
	for _, o := range w.observed {
		if o.Kind == flow.KindDelivered {
			w.deadReported[key] = false
		}
	}
}

// storeLetter keeps a dead letter, and returns the ID of its notification.
func (w *simulation) storeLetter(m flow.Message) string {
	var l flow.DeadLetter
	if err := json.Unmarshal(m.Body, &l); err != nil {
		w.fatalf("%v", err)
	}
	if l.Attempts < minFailures && strings.HasPrefix(l.Reason, "not delivered within") {
		w.fatalf("given up after %d attempts: %s", l.Attempts, l.Reason)
	}
	w.dead.handle(w, m)
	return l.Addressed.Notification.ID
}

// checkHealth checks that an event tells of a change of state.
func (w *simulation) checkHealth(key string, m flow.Message) {
	h, err := flow.HealthFrom(m)
	if err != nil {
		w.fatalf("%v", err)
	}
	if w.healthIDs[h.ID] {
		w.fatalf("%s: the event %+v has the ID of an earlier one", key, h)
	}
	w.healthIDs[h.ID] = true
	w.healthCounts[h.Event]++
	before := w.lastHealth[key]
	ok := false
	switch h.Event {
	case pipeline.HealthReceiverFailing:
		ok = before == "" && h.Count >= failingAfter
	case pipeline.HealthReceiverExpired:
		ok = before != h.Event && (h.Count >= minFailures || strings.Contains(h.Reason, "gone"))
	case pipeline.HealthReceiverRecovered:
		ok = before != "" && h.Expired == (before == pipeline.HealthReceiverExpired)
	case pipeline.HealthDeadLetter:
		ok = !w.deadReported[key]
		w.deadReported[key] = true
		h.Event = before
	}
	if !ok || h.Receiver.Sink != key || h.Since.IsZero() || h.Since.After(w.now) {
		w.fatalf("%s: after %q came %+v", key, before, h)
	}
	w.lastHealth[key] = h.Event
	if h.Event == pipeline.HealthReceiverRecovered {
		w.lastHealth[key] = ""
	}
}

// deadLetterSimulation drives the DeadLetters of a simulation.
type deadLetterSimulation struct{ store *txtest.Store }

// handle gives m to a DeadLetters, now and then in a transaction that is lost first.
func (d deadLetterSimulation) handle(w *simulation, m flow.Message) {
	p := NewDeadLetters(DeadConfig{Now: func() time.Time { return w.now }})
	for w.r.IntN(3) == 0 {
		if err := p.Process(w.t.Context(), d.store.Begin(), m); err != nil {
			w.fatalf("%v", err)
		}
	}
	if err := d.store.Handle(w.t.Context(), p, m); err != nil {
		w.fatalf("%v", err)
	}
}

// replay returns the letters of key as they come back.
func (d deadLetterSimulation) replay(w *simulation, key string) []flow.Message {
	d.handle(w, flow.Message{ID: "replay", Topic: flow.TopicDead, Key: key, Type: flow.TypeReplay, Body: []byte("{}")})
	for _, m := range d.store.Due(w.now) {
		d.handle(w, m)
	}
	return d.store.Take()
}
