package local

import (
	"testing"
	"testing/synctest"

	"github.com/ThreeDotsLabs/watermill/message"
)

// TestPublishedStays publishes one message of Watermill twice in a transaction, with other
// metadata each time.
func TestPublishedStays(t *testing.T) {
	tr := open(t, Config{Lanes: 1})
	in := subscribe(t, tr, "g", "in")
	got := map[string]<-chan *message.Message{"a": subscribe(t, tr, "g", "a"), "b": subscribe(t, tr, "g", "b")}
	publish(t, tr, text("in", "k", "1", 1))
	m := <-in
	pub, out := tr.Publisher(), message.NewMessage("2", nil)
	out.SetContext(m.Context())
	for _, topic := range []string{"a", "b"} {
		out.Metadata.Set("for", topic)
		if err := pub.Publish(topic, out); err != nil {
			t.Fatal(err)
		}
	}
	m.Ack()
	for topic, ms := range got {
		m := <-ms
		if to := m.Metadata.Get("for"); to != topic {
			t.Errorf("topic %s got the metadata of %s", topic, to)
		}
		m.Ack()
	}
}

// TestEntryWaitsForRoom has a full topic that is Feedback, into which the handlers of an Entry
// topic emit.
func TestEntryWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, Config{Bound: 1, Topics: map[string]Topic{
			"in": {Groups: []string{"g"}, Entry: true}, "back": {Groups: []string{"h"}, Feedback: true},
		}})
		for _, topic := range []string{"back", "in"} {
			publish(t, tr, text(topic, "k", "1", 1))
		}
		msg := <-subscribe(t, tr, "g", "in")
		tx := transactionOf(msg)
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
	})
}

// TestPostSurvivesUnsubscribing gives a posted message to a subscription that ends
// without having read it.
func TestPostSurvivesUnsubscribing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, Config{})
		if err := tr.Poster("g", "in").Post(t.Context(), text("in", "k", "posted", 0)); err != nil {
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
