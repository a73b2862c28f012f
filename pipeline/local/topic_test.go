package local

import (
	"fmt"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestEphemeral has a topic in memory between two that are stored: its messages come in
// order, also many more than a lane's tail holds, and count with the transaction that
// emits them; after a start there are none.
func TestEphemeral(t *testing.T) {
	db := newMemoryStore(t)
	topics := map[string]Topic{"in": {Groups: []string{"g"}}, "asked": {Groups: []string{"g"}}, "out": {Groups: []string{"g"}}}
	first := open(t, Config{Store: db, Topics: topics})
	publish(t, first, newMessage("asked", "k", "of the time before", 1))
	mustClose(t, first)

	topics["asked"] = Topic{Groups: []string{"g"}, Feedback: true, Ephemeral: true}
	tr := open(t, Config{Store: db, Topics: topics})
	if got := storedEntries(t, db, "asked"); len(got) != 0 {
		t.Errorf("%d messages of an ephemeral topic are still stored", len(got))
	}
	const messages = 20
	for i := range messages {
		publish(t, tr, newMessage("in", "k", fmt.Sprint(i), 0))
	}
	in := subscribe(t, tr, "g", "in")
	for i := range messages {
		msg := <-in
		tx := transactionOf(msg)
		tx.Emit(newMessage("asked", "k", fmt.Sprint("asked", i), maxTailBytes/4))
		if i == 3 { // it comes again
			msg.Nack()
			msg = <-in
			tx, _ = flow.TxFrom(msg.Context())
			tx.Emit(newMessage("asked", "k", fmt.Sprint("asked", i), maxTailBytes/4))
		}
		msg.Ack()
	}
	asked := subscribe(t, tr, "g", "asked")
	for i := range messages / 2 {
		msg := <-asked
		if want := fmt.Sprint("asked", i); msg.UUID != want {
			t.Fatalf("got %s, want %s", msg.UUID, want)
		}
		if at := positionOf(msg); at != "" {
			t.Errorf("%s has the position %s, which will come again", msg.UUID, at)
		}
		tx := transactionOf(msg)
		if err := tx.State("k").Set("handled", []byte(msg.UUID)); err != nil {
			t.Fatal(err)
		}
		tx.Emit(newMessage("out", "k", fmt.Sprint("out", i), 0))
		msg.Ack()
	}
	out := subscribe(t, tr, "g", "out")
	for i := range messages / 2 {
		msg := <-out
		if want := fmt.Sprint("out", i); msg.UUID != want {
			t.Fatalf("got %s, want %s", msg.UUID, want)
		}
		msg.Ack()
	}
	if got := storedEntries(t, db, "asked"); len(got) != 0 {
		t.Errorf("%d messages of an ephemeral topic are stored", len(got))
	}
	mustClose(t, tr)

	tr = open(t, Config{Store: db, Topics: topics})
	if !tr.Idle() {
		t.Error("something of an ephemeral topic outlived its process")
	}
	if v, ok, err := tr.State("g", "k").Get("handled"); err != nil || !ok || string(v) != fmt.Sprint("asked", messages/2-1) {
		t.Errorf("state %q, %t, %v", v, ok, err)
	}
}

// TestEphemeralWithoutGroups has nobody read an ephemeral topic: nothing is kept of it, also
// where a store in memory keeps other topics, and who comes later begins with what comes then.
func TestEphemeralWithoutGroups(t *testing.T) {
	for _, c := range []Config{{}, {Store: newMemoryStore(t)}} {
		c.Topics = map[string]Topic{"told": {Ephemeral: true, Feedback: true}, "kept": {}}
		tr := open(t, c)
		for i := range 10 {
			publish(t, tr, newMessage("told", "k", fmt.Sprint("early", i), 0), newMessage("kept", "k", "kept", 0))
		}
		l := tr.topic("told").lanes[tr.laneOf("k")]
		if n := len(l.tail) + len(l.kept); n > 0 || tr.topic("told").keptBytes.Load() > 0 {
			t.Errorf("%d messages and marks and %d bytes of a topic that nobody reads are kept", n, tr.topic("told").keptBytes.Load())
		}
		if tr.topic("kept").keptBytes.Load() == 0 {
			t.Error("a topic that is not ephemeral is not kept")
		}
		told := subscribe(t, tr, "g", "told")
		publish(t, tr, newMessage("told", "k", "late", 0))
		msg := <-told
		if msg.UUID != "late" {
			t.Errorf("got %s, want late", msg.UUID)
		}
		msg.Ack()
	}
}
