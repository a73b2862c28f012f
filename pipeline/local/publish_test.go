package local

import (
	"testing"
	"testing/synctest"
)

// TestEntryWaitsForRoom has a full topic that is Feedback, into which the handlers of an Entry
// topic emit.
func TestEntryWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, Config{Bound: 1, Topics: map[string]Topic{
			"in": {Groups: []string{"g"}, Entry: true}, "back": {Groups: []string{"h"}, Feedback: true},
		}})
		for _, topic := range []string{"back", "in"} {
			publish(t, tr, newMessage(topic, "k", "1", 1))
		}
		msg := <-subscribe(t, tr, "g", "in")
		tx := transactionOf(msg)
		tx.Emit(newMessage("back", "k", "2", 1))
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
	})
}

// TestPostSurvivesUnsubscribing gives a posted message to a subscription that ends
// without having read it.
func TestPostSurvivesUnsubscribing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, Config{})
		if err := tr.Poster("g", "in").Post(t.Context(), newMessage("in", "k", "posted", 0)); err != nil {
			t.Fatal(err)
		}
		sub := tr.Subscriber("g")
		if _, err := sub.Subscribe(t.Context(), "in"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mustClose(t, sub)
		if tr.Idle() {
			t.Error("idle though a posted message was not handled")
		}
		m := <-subscribe(t, tr, "g", "in")
		if m.UUID != "posted" {
			t.Errorf("got %s", m.UUID)
		}
		m.Ack()
		synctest.Wait()
		if !tr.Idle() {
			t.Error("not idle after the posted message was handled")
		}
	})
}
