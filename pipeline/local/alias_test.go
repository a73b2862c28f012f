package local

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
)

// TestPublishedStays publishes one message of Watermill twice in a transaction, with other
// metadata each time.
func TestPublishedStays(t *testing.T) {
	tr := open(t, Config{Lanes: 1})
	in := subscribe(t, tr, "g", "in")
	got := map[string]<-chan *message.Message{"a": subscribe(t, tr, "g", "a"), "b": subscribe(t, tr, "g", "b")}
	if err := tr.Publish(t.Context(), text("in", "k", "1", 1)); err != nil {
		t.Fatal(err)
	}
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
