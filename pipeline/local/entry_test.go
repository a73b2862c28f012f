package local

import (
	"testing"
	"testing/synctest"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestEntryWaitsForRoom has a full topic that is Feedback, into which the handlers of an Entry
// topic emit.
func TestEntryWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, Config{Bound: 1, Topics: map[string]Topic{
			"in": {Groups: []string{"g"}, Entry: true}, "back": {Groups: []string{"h"}, Feedback: true},
		}})
		for _, topic := range []string{"back", "in"} {
			if err := tr.Publish(t.Context(), text(topic, "k", "1", 1)); err != nil {
				t.Fatal(err)
			}
		}
		msg := <-subscribe(t, tr, "g", "in")
		tx, _ := flow.TxFrom(msg.Context())
		tx.Emit(text("back", "k", "2", 1))
		committed := false
		tx.OnCommit(func() { committed = true })
		msg.Ack()
		synctest.Wait()
		if committed {
			t.Error("it did not wait for room")
		}
		back := subscribe(t, tr, "h", "back")
		(<-back).Ack()
		if got := <-back; got.UUID != "2" {
			t.Errorf("got %s, want what was emitted", got.UUID)
		} else {
			got.Ack()
		}
		synctest.Wait()
		if !committed {
			t.Error("it still waits, though there is room")
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
}
