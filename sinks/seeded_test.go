package sinks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/internal/txtest"
	"github.com/vokter/vokter/pipeline"
)

var seeds = flag.Int("seeds", 200, "how many seeds TestSeeded tries")

const remember = 100 * time.Hour

// world drives a Delivery with a virtual clock and random events, and compares what it
// does with what has to come of it.
type world struct {
	t    *testing.T
	seed uint64
	r    *rand.Rand
	now  time.Time

	store *txtest.Store
	d     *Delivery
	// flying are the attempts handed out and not ended, posted the results that were not
	// handled yet. A crash loses both.
	flying map[string]Attempt
	posted map[string][]pipeline.Message
	// starting are the wakes of the start that were not handled yet.
	starting []pipeline.Message

	receivers []string
	// queue is what each receiver still has to get, in order.
	queue map[string][]string
	ended map[string]string // by ID: delivered or dead
	at    map[string]time.Time
	sent  []pipeline.Message
	// dead and handed count dead letters and attempts.
	dead, handed int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 1)), now: t0,
		store: txtest.New(), posted: make(map[string][]pipeline.Message),
		queue: make(map[string][]string), ended: make(map[string]string), at: make(map[string]time.Time),
	}
	for i := range 1 + w.r.IntN(4) {
		w.receivers = append(w.receivers, fmt.Sprintf("r%d", i))
	}
	w.start()
	return w
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

// start is the beginning of a process. Wakes that an earlier one did not handle come again.
func (w *world) start() {
	w.flying = make(map[string]Attempt)
	w.posted = make(map[string][]pipeline.Message)
	w.d = NewDelivery(Config{
		Policy: Policy{DeadAfter: 10 * time.Hour, Remember: remember},
		Now:    func() time.Time { return w.now }, Jitter: w.r.Float64, Hand: w.hand,
	})
	w.starting = append(w.starting, w.store.Start(w.now)...)
}

// startWakes handles the wakes of the start, which may come after other messages.
func (w *world) startWakes() {
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

func (w *world) hand(a Attempt) {
	key := a.Receiver.ID()
	if other, ok := w.flying[key]; ok {
		w.fatalf("%s: attempt %d begins while %d is in flight", key, a.Number, other.Number)
	}
	if len(w.posted[key]) > 0 {
		w.fatalf("%s: attempt %d begins before a result was handled", key, a.Number)
	}
	if q := w.queue[key]; len(q) == 0 || q[0] != a.Notification.ID {
		w.fatalf("%s: %s is sent, want the first of %v", key, a.Notification.ID, q)
	}
	w.flying[key] = a
	w.handed++
}

// handle gives m to the processor, now and then in a transaction that is lost first,
// and takes what the commit says into the model.
func (w *world) handle(m pipeline.Message) {
	for w.r.IntN(5) == 0 {
		before := maps.Clone(w.d.book.entries)
		if err := w.d.Process(w.t.Context(), w.store.Begin(), m); err != nil {
			w.fatalf("%s: %v", m.Type, err)
		}
		if !maps.Equal(w.d.book.entries, before) {
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
	for _, dead := range tx.Emitted() {
		if dead.Topic != pipeline.TopicDead {
			continue
		}
		var letter pipeline.DeadLetter
		if err := json.Unmarshal(dead.Body, &letter); err != nil {
			w.fatalf("%v", err)
		}
		w.end(m.Key, letter.Addressed.Notification.ID, "dead")
		w.dead++
	}
	if m.Type == typeResult {
		var r result
		if err := json.Unmarshal(m.Body, &r); err != nil {
			w.fatalf("%v", err)
		}
		if r.Delivered {
			w.end(m.Key, w.queue[m.Key][0], "delivered")
		}
	}
	handed := w.handed
	tx.Commit()
	if w.handed > handed && !tx.Synced() {
		w.fatalf("an attempt begins before its notification is durable")
	}
}

// end takes the first of a receiver's queue out.
func (w *world) end(key, id, how string) {
	q := w.queue[key]
	if len(q) == 0 || q[0] != id {
		w.fatalf("%s: %s is %s, want the first of %v", key, id, how, q)
	}
	w.queue[key] = q[1:]
	w.ended[id] = how
	w.at[id] = w.now
}

func (w *world) notify(key string) {
	id := fmt.Sprintf("n%d", len(w.sent))
	m, err := pipeline.Addressed{
		Receiver:     pipeline.Receiver{Sink: key},
		Notification: pipeline.Notification{ID: id, URL: "https://example.com/"},
	}.Message()
	if err != nil {
		w.fatalf("%v", err)
	}
	w.sent = append(w.sent, m)
	w.queue[key] = append(w.queue[key], id)
	w.handle(m)
}

// repeat sends a message once more: one that is pending or delivered is dropped, a dead
// one is replayed.
func (w *world) repeat() {
	if len(w.sent) == 0 {
		return
	}
	m := w.sent[w.r.IntN(len(w.sent))]
	switch {
	case w.ended[m.ID] == "delivered" && w.now.Sub(w.at[m.ID]) >= remember:
		return // forgotten by now
	case w.ended[m.ID] == "dead":
		m.Header = maps.Clone(m.Header)
		m.Header[pipeline.HeaderReplay] = "1"
		delete(w.ended, m.ID)
		w.queue[m.Key] = append(w.queue[m.Key], m.ID)
	}
	w.handle(m)
}

// finish ends one attempt.
func (w *world) finish(err error) {
	for _, key := range slices.Sorted(maps.Keys(w.flying)) {
		if w.r.IntN(2) == 0 {
			continue
		}
		a := w.flying[key]
		delete(w.flying, key)
		m := a.Result(err)
		w.posted[key] = append(w.posted[key], m)
		w.d.book.posted(key, a.Number, w.now)
		return
	}
}

func (w *world) results() {
	for _, key := range slices.Sorted(maps.Keys(w.posted)) {
		if len(w.posted[key]) > 0 && w.r.IntN(2) == 0 {
			m := w.posted[key][0]
			w.posted[key] = w.posted[key][1:]
			w.handle(m)
		}
	}
}

func (w *world) wakes() {
	w.flush()
	for _, m := range w.store.Due(w.now) {
		w.handle(m)
	}
}

var failures = []error{
	errors.New("plain"),
	pipeline.RetryAfter(errors.New("busy"), time.Hour),
	pipeline.Refused(errors.New("refused")),
	pipeline.Permanent(errors.New("permanent")),
	pipeline.Ambiguous(errors.New("reset")),
	context.Canceled,
}

func (w *world) step() {
	switch n := w.r.IntN(100); {
	case n < 20:
		w.notify(w.receivers[w.r.IntN(len(w.receivers))])
	case n < 25:
		w.repeat()
	case n < 45:
		w.finish(nil)
	case n < 60:
		w.finish(failures[w.r.IntN(len(failures))])
	case n < 61:
		w.finish(pipeline.Gone(errors.New("gone")))
	case n < 80:
		w.results()
	case n < 90:
		w.now = w.now.Add(time.Duration(w.r.Int64N(int64(10 * time.Minute))))
		w.wakes()
	case n < 92:
		w.startWakes()
	case n < 97:
		w.nextWake()
	default:
		w.start()
	}
}

// nextWake moves the clock to the earliest wake.
func (w *world) nextWake() {
	var at []time.Time
	for _, key := range w.receivers {
		if wake, ok := w.store.Wake(key); ok {
			at = append(at, wake.At)
		}
	}
	if len(at) == 0 {
		return
	}
	slices.SortFunc(at, func(a, b time.Time) int { return a.Compare(b) })
	w.now = w.now.Add(max(at[0].Sub(w.now), 0))
	w.wakes()
}

func TestSeeded(t *testing.T) {
	sent, dead := 0, 0
	for seed := range uint64(*seeds) {
		w := newWorld(t, seed)
		for range 300 {
			w.step()
		}
		w.drain()
		sent, dead = sent+len(w.sent), dead+w.dead
	}
	if dead == 0 || dead == sent {
		t.Errorf("%d of %d are dead: the test tests little", dead, sent)
	}
}

// flush handles results that waited for longer than it takes to hold them to be lost.
func (w *world) flush() {
	for _, key := range slices.Sorted(maps.Keys(w.posted)) {
		for len(w.posted[key]) > 0 && !w.d.book.inFlight(key, w.d.book.entries[key].attempt, w.now) {
			m := w.posted[key][0]
			w.posted[key] = w.posted[key][1:]
			w.handle(m)
		}
	}
}

// drain lets every attempt succeed until nothing is pending; nothing may be missing
// then. Long after, nothing may be remembered.
func (w *world) drain() {
	w.startWakes()
	for _, key := range w.receivers {
		w.notify(key) // the success that ends whatever fails
	}
	for range 100_000 {
		w.results()
		w.finish(nil)
		pending := 0
		for _, q := range w.queue {
			pending += len(q)
		}
		if pending == 0 {
			break
		}
		if len(w.flying) == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(w.posted)), func(ms []pipeline.Message) bool { return len(ms) > 0 }) {
			w.nextWake()
		}
	}
	for key, q := range w.queue {
		if len(q) > 0 {
			w.fatalf("%s: %v were never delivered", key, q)
		}
	}
	for _, m := range w.sent {
		if w.ended[m.ID] == "" {
			w.fatalf("%s is lost", m.ID)
		}
	}
	if due, parked := w.d.Backlog(time.Hour); due+parked != 0 {
		w.fatalf("the backlog is %d+%d, want none", due, parked)
	}
	for range 100 {
		w.nextWake()
	}
	if keys := w.store.Keys(); len(keys) > 0 {
		key := cmp.Or(keys...)
		w.fatalf("%s still has %v", key, w.store.Names(key))
	}
}
