package local

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
)

// TestLeanSubscriber takes messages from their contexts; what was published with metadata
// alone has those.
func TestLeanSubscriber(t *testing.T) {
	tr, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	header := map[string]string{"a": "1"}
	if err := tr.Publish(t.Context(), pipeline.Message{ID: "1", Topic: "in", Key: "k", Type: "x", Header: header, Body: []byte("b")}); err != nil {
		t.Fatal(err)
	}
	header["a"] = "the publisher's own"
	plain := message.NewMessage("2", nil)
	plain.Metadata.Set("a", "2")
	plain.Metadata.Set(pipeline.HeaderKey, "k")
	if err := tr.Publisher().Publish("in", plain); err != nil {
		t.Fatal(err)
	}
	lean, err := tr.LeanSubscriber("lean").Subscribe(t.Context(), "in")
	if err != nil {
		t.Fatal(err)
	}
	full, err := tr.Subscriber("full").Subscribe(t.Context(), "in")
	if err != nil {
		t.Fatal(err)
	}

	wm := <-lean
	m, ok := pipeline.MessageFrom(wm.Context())
	if !ok || m.ID != "1" || m.Topic != "in" || m.Key != "k" || m.Header["a"] != "1" || m.Position == "" {
		t.Errorf("the context carries %+v, %t", m, ok)
	}
	if wm.UUID != "1" || string(wm.Payload) != "b" || len(wm.Metadata) != 0 {
		t.Errorf("got %s %q with metadata %v", wm.UUID, wm.Payload, wm.Metadata)
	}
	m.Header["a"] = "the handler's own"
	wm.Ack()
	if wm = <-lean; wm.UUID != "2" || wm.Metadata["a"] != "2" {
		t.Errorf("got %s with metadata %v, want those it was published with", wm.UUID, wm.Metadata)
	}
	if m, ok := pipeline.MessageFrom(wm.Context()); ok {
		t.Errorf("a message with metadata alone is %+v", m)
	}
	wm.Ack()

	wm = <-full
	if got, err := pipeline.FromMetadata(wm.Metadata, wm.Payload); err != nil || got.ID != "1" || got.Header["a"] != "1" {
		t.Errorf("metadata carry %+v, %v", got, err)
	}
	wm.Ack()
	(<-full).Ack()
}
