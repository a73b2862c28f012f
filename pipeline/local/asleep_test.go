package local

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestAsleep: what a group has scheduled comes neither at its time nor at the start while
// the group is asleep, and is not forgotten.
func TestAsleep(t *testing.T) {
	db := memory(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	start := func(at time.Time, asleep ...string) (*Transport, <-chan *message.Message) {
		tr := open(t, Config{
			Store: db, Now: func() time.Time { return at }, Asleep: asleep,
			Topics: map[string]Topic{"in": {Groups: []string{"g"}}},
		})
		return tr, subscribe(t, tr, "g", "in")
	}
	stop := func(tr *Transport) {
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
	}
	schedule := func(tr *Transport, in <-chan *message.Message, id string) {
		if err := tr.Publish(t.Context(), text("in", "k", id, 1)); err != nil {
			t.Fatal(err)
		}
		msg := <-in
		if msg.UUID != id {
			t.Fatalf("message %s, want %s and no wake", msg.UUID, id)
		}
		tx, _ := flow.TxFrom(msg.Context())
		tx.WakeAt("k", now.Add(time.Hour), flow.AtStart)
		msg.Ack()
	}

	tr, in := start(now)
	schedule(tr, in, "1")
	stop(tr)

	tr, in = start(now.Add(2*time.Hour), "g")
	schedule(tr, in, "2")
	schedule(tr, in, "3")
	for !tr.Idle() {
		time.Sleep(time.Millisecond) // the last commit
	}
	stop(tr)

	tr, in = start(now)
	msg := <-in
	msg.Ack()
	if msg.Metadata["ce_type"] != flow.TypeWake {
		t.Errorf("%v, want the wake of the start", msg.Metadata)
	}
	stop(tr)
}
