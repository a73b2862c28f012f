package delivery

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

var seeds = flag.Int("seeds", 15, "how many seeds TestSeeded tries")

// TestSeeded checks that every notification ends in exactly one way, that each receiver gets its
// notifications in order, and that every change of state is reported once.
func TestSeeded(t *testing.T) {
	how := make(map[string]int)
	for seed := range uint64(*seeds) {
		w := newSimulation(t, seed)
		for range 300 {
			w.step()
		}
		w.drain()
		for _, end := range w.ended {
			how[end]++
		}
		for event, n := range w.healthCounts {
			how[string(event)] += n
		}
		how["replayed"] += w.replayed
		how["batched"] += w.batched
	}
	for _, what := range []string{
		flow.KindDelivered, flow.KindDead, flow.KindDropped, "replayed", "batched", string(pipeline.HealthReceiverExpired),
		string(pipeline.HealthReceiverFailing), string(pipeline.HealthReceiverRecovered), string(pipeline.HealthDeadLetter),
	} {
		if how[what] < *seeds/10 {
			t.Errorf("%d times %s: the test tests little", how[what], what)
		}
	}
}

var failures = []error{
	errors.New("plain"),
	failure.RetryAfter(errors.New("busy"), time.Hour),
	failure.Refused(errors.New("refused")),
	failure.Permanent(errors.New("permanent")),
	failure.Ambiguous(errors.New("reset")),
	context.Canceled,
}

func (w *simulation) step() {
	key := w.receivers[w.r.IntN(len(w.receivers))]
	switch n := w.r.IntN(1000); {
	case n < 200:
		w.notify(key, max(w.incarnations[key]-w.r.IntN(10)/9, 0))
	case n < 250:
		w.resend()
	case n < 450:
		w.finishAttempt(nil)
	case n < 600:
		w.finishAttempt(failures[w.r.IntN(len(failures))])
	case n < 610:
		w.finishAttempt(failure.Gone(errors.New("gone")))
	case n < 790:
		w.handleResults()
	case n < 890:
		w.moveClock(time.Duration(w.r.Int64N(int64(10 * time.Minute))))
	case n < 910:
		w.startWakes()
	case n < 940:
		w.nextWake()
	case n < 960:
		w.withdraw(key)
	case n < 975:
		w.replay(key)
	case n < 980:
		w.moveClock(time.Duration(w.r.Int64N(int64(30 * time.Hour))))
	case n < 985:
		w.moveClock(-time.Duration(w.r.Int64N(int64(300 * time.Hour))))
	default:
		w.start()
	}
}

// notify sends a new notification, of a subscription that was or was not withdrawn.
func (w *simulation) notify(key string, life int) {
	id := fmt.Sprintf("n%d", len(w.sent))
	w.subscriptionOf[id] = fmt.Sprintf("%s/%d", key, life)
	m := notification(w.t, key, w.subscriptionOf[id], id)
	w.sent = append(w.sent, m)
	w.deliver(m)
}

// deliver adds a message that is to be delivered to the model, and handles it.
func (w *simulation) deliver(m flow.Message) {
	w.queue[m.Key] = append(w.queue[m.Key], m.ID)
	delete(w.ended, m.ID)
	_, marked := w.store.Value(m.Key, nameWithdrawn+w.subscriptionOf[m.ID])
	w.unmarked[m.ID] = w.withdrawn[w.subscriptionOf[m.ID]] && !marked
	if w.unmarked[m.ID] && !w.mayBeForgotten(w.cancelled[w.subscriptionOf[m.ID]]) {
		w.fatalf("it is forgotten too early that %s was cancelled", w.subscriptionOf[m.ID])
	}
	w.handle(m)
}

// resend sends a message once more: what is known is not delivered again.
func (w *simulation) resend() {
	if len(w.sent) == 0 {
		return
	}
	m := w.sent[w.r.IntN(len(w.sent))]
	if w.ended[m.ID] != "" && w.mayBeForgotten(w.endedAt[m.ID]) {
		return
	}
	w.handle(m)
}

// withdraw cancels the subscription that stands; another follows it.
func (w *simulation) withdraw(key string) {
	sub := fmt.Sprintf("%s/%d", key, w.incarnations[key])
	w.incarnations[key]++
	w.withdrawn[sub], w.cancelled[sub] = true, w.now
	m := withdrawal(key, sub)
	w.handle(m)
	w.handle(m)
}

// replay brings the dead letters of a receiver back.
func (w *simulation) replay(key string) {
	for _, m := range w.dead.replay(w, key) {
		if m.Header[flow.HeaderReplay] != "1" || w.ended[m.ID] != flow.KindDead {
			w.fatalf("%s is brought back, marked %q, but it is %q", m.ID, m.Header[flow.HeaderReplay], w.ended[m.ID])
		}
		w.replayed++
		w.deliver(m)
		if slices.Contains(w.queue[key], m.ID) {
			w.handle(m) // it is pending by now
		}
	}
}

// moveClock moves the clock.
func (w *simulation) moveClock(by time.Duration) {
	w.now = w.now.Add(by)
	w.latest = later(w.latest, w.now)
	due := w.now
	if by < -time.Minute {
		due = w.now.Add(1000 * time.Hour) // transports wake everything once
	}
	for _, m := range w.store.Due(due) {
		w.handle(m)
	}
	longest := Policy{}.withDefaults().longestDelay()
	for _, key := range w.receivers {
		if wake, ok := w.store.Wake(key); len(w.queue[key]) > 0 && len(w.starting) == 0 && (!ok || wake.At.Sub(w.now) > longest) {
			w.fatalf("%s: the clock stands at %s, the next wake is at %s", key, w.now, wake.At)
		}
	}
}

// nextWake moves the clock to the earliest wake.
func (w *simulation) nextWake() {
	var at []time.Time
	for _, key := range w.receivers {
		if wake, ok := w.store.Wake(key); ok {
			at = append(at, wake.At)
		}
	}
	if len(at) > 0 {
		w.moveClock(max(slices.MinFunc(at, time.Time.Compare).Sub(w.now), 0))
	}
}

// drain lets every attempt succeed until nothing is pending; nothing may be missing
// then. Long after, nothing may be remembered.
func (w *simulation) drain() {
	w.startWakes()
	w.deliverAll()
	for _, key := range w.receivers {
		w.notify(key, w.incarnations[key]) // the success that ends whatever fails
	}
	w.deliverAll()
	for key, q := range w.queue {
		if len(q) > 0 {
			w.fatalf("%s: %v were never delivered", key, q)
		}
	}
	for _, m := range w.sent {
		if w.ended[m.ID] == "" {
			w.fatalf("%s is lost", m.ID)
		}
		w.checkKnown(m.Key, m.ID)
	}
	if due, parked := w.d.Backlog(time.Hour); due+parked != 0 {
		w.fatalf("the backlog is %d+%d, want none", due, parked)
	}
	for range 1000 {
		w.nextWake()
	}
	if keys := w.store.Keys(); len(keys) > 0 {
		w.fatalf("%s still has %v", keys[0], w.store.Names(keys[0]))
	}
}

// checkKnown compares what delivery says of a notification.
func (w *simulation) checkKnown(key, id string) {
	r, ok, err := Known(w.store.Begin().State(key), id)
	switch {
	case err != nil:
		w.fatalf("%s: %v", id, err)
	case !ok && w.mayBeForgotten(w.endedAt[id]):
	case r.State != w.ended[id] || !r.Time.Equal(w.endedAt[id]):
		w.fatalf("%s is %+v, %v; want %s at %s", id, r, ok, w.ended[id], w.endedAt[id])
	case r.State == RecordDelivered && r.Attempts == 0:
		w.fatalf("%s was delivered without an attempt", id)
	}
}

// deliverAll lets attempts succeed until nothing is pending.
func (w *simulation) deliverAll() {
	for range 100_000 {
		w.handleResults()
		w.finishAttempt(nil)
		busy := len(w.inFlight) > 0
		for _, ms := range w.posted {
			busy = busy || len(ms) > 0
		}
		pending := 0
		for _, q := range w.queue {
			pending += len(q)
		}
		switch {
		case !busy && pending == 0:
			return
		case !busy:
			w.nextWake()
		}
	}
}

// finishAttempt ends one of the attempts in flight, at random, with err.
func (w *simulation) finishAttempt(err error) {
	for _, key := range slices.Sorted(maps.Keys(w.inFlight)) {
		if w.r.IntN(2) == 0 {
			continue
		}
		a := w.inFlight[key]
		delete(w.inFlight, key)
		delivered := w.r.IntN(len(a.Notifications))
		m := a.Result(append(make([]error, delivered), err)...)
		w.posted[key] = append(w.posted[key], m)
		return
	}
}

func (w *simulation) handleResults() {
	for _, key := range slices.Sorted(maps.Keys(w.posted)) {
		if len(w.posted[key]) > 0 && w.r.IntN(2) == 0 {
			m := w.posted[key][0]
			w.posted[key] = w.posted[key][1:]
			w.handle(m)
		}
	}
}
