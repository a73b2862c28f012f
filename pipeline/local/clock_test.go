package local

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestAsleep: what a group has scheduled comes neither at its time nor at the start while
// the group is asleep, and is not forgotten.
func TestAsleep(t *testing.T) {
	db := newMemoryStore(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	start := func(at time.Time, asleep ...string) (*Transport, <-chan *message.Message) {
		tr := open(t, Config{
			Store: db, Now: func() time.Time { return at }, Asleep: asleep,
			Topics: map[string]Topic{"in": {Groups: []string{"g"}}},
		})
		return tr, subscribe(t, tr, "g", "in")
	}
	schedule := func(tr *Transport, in <-chan *message.Message, id string) {
		publish(t, tr, newMessage("in", "k", id, 1))
		msg := <-in
		if msg.UUID != id {
			t.Fatalf("message %s, want %s and no wake", msg.UUID, id)
		}
		transactionOf(msg).WakeAt("k", now.Add(time.Hour), flow.AtStart)
		msg.Ack()
	}

	tr, in := start(now)
	schedule(tr, in, "1")
	mustClose(t, tr)

	tr, in = start(now.Add(2*time.Hour), "g")
	schedule(tr, in, "2")
	schedule(tr, in, "3")
	for !tr.Idle() {
		time.Sleep(time.Millisecond) // the last commit
	}
	mustClose(t, tr)

	tr, in = start(now)
	msg := <-in
	msg.Ack()
	if msg.Metadata["ce_type"] != flow.TypeWake {
		t.Errorf("%v, want the wake of the start", msg.Metadata)
	}
	mustClose(t, tr)
}

// TestWakesAtStartComeBehindTheLog: what came of the work that a wake at start takes for
// dead may be in the log already, and is handled first.
func TestWakesAtStartComeBehindTheLog(t *testing.T) {
	c := Config{Store: newMemoryStore(t), Topics: map[string]Topic{"in": {Groups: []string{"g"}}}}
	tr := open(t, c)
	publish(t, tr, newMessage("in", "k", "first", 1))
	m := <-subscribe(t, tr, "g", "in")
	transactionOf(m).WakeAt("k", time.Now().Add(time.Hour), flow.AtStart)
	m.Ack()
	for !tr.Idle() {
		time.Sleep(time.Millisecond)
	}
	mustClose(t, tr)

	tr = open(t, c)
	const n = 5
	var want, got []string
	for i := range n {
		want = append(want, fmt.Sprint(i))
		publish(t, tr, newMessage("in", "k", fmt.Sprint(i), 1))
	}
	want = append(want, flow.TypeWake)
	in := subscribe(t, tr, "g", "in")
	for range n + 1 {
		m := <-in
		if id := m.Metadata["ce_type"]; id == flow.TypeWake {
			got = append(got, id)
		} else {
			got = append(got, m.UUID)
		}
		m.Ack()
	}
	if !slices.Equal(got, want) {
		t.Errorf("came %v, want %v", got, want)
	}
}

// TestFarWakes waits for days through a timer that never sleeps longer than a minute.
func TestFarWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, Config{})
		ch := subscribe(t, tr, "g", "in")
		start := time.Now()
		delays := []time.Duration{49 * time.Hour, 5 * time.Hour, 30 * time.Second, 90 * time.Minute}
		for i, d := range delays {
			publish(t, tr, newMessage("in", fmt.Sprint(i), fmt.Sprint(i), 0))
			m := <-ch
			transactionOf(m).WakeAt(fmt.Sprint(i), start.Add(d))
			m.Ack()
		}
		slices.Sort(delays)
		for _, d := range delays {
			m := <-ch
			if got := time.Since(start); got != d {
				t.Errorf("a wake came after %v, want %v", got, d)
			}
			m.Ack()
		}
		synctest.Wait()
		if !tr.Idle() {
			t.Error("not idle after the last wake")
		}
	})
}

// TestAPostedMessageComesBeforeTheWakeOfItsKey: the lane is held up for longer than the time after
// which a wake takes a result for lost. The result was posted meanwhile, so it comes first, whatever
// turn it is.
func TestAPostedMessageComesBeforeTheWakeOfItsKey(t *testing.T) {
	for before := range 4 {
		synctest.Test(t, func(t *testing.T) {
			tr := open(t, Config{Store: newMemoryStore(t)})
			in := subscribe(t, tr, "g", "in")
			for range before {
				publish(t, tr, newMessage("in", "earlier", "earlier", 0))
				(<-in).Ack()
			}
			publish(t, tr, newMessage("in", "k", "k", 0))
			m := <-in
			transactionOf(m).WakeAt("k", time.Now().Add(time.Minute))
			m.Ack()
			publish(t, tr, newMessage("in", "other", "other", 0))
			m = <-in
			if err := tr.Poster("g", "in").Post(t.Context(), newMessage("in", "k", "result", 0)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			m.Ack()
			var got []string
			for range 2 {
				m := <-in
				got = append(got, m.Metadata["ce_type"])
				m.Ack()
			}
			if want := []string{"test.v1", flow.TypeWake}; !slices.Equal(got, want) {
				t.Errorf("after %d messages came %v, want %v", before, got, want)
			}
		})
	}
}
