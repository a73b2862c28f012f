package kafka

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestPublishedStays changes a message of Watermill once it was published.
func TestPublishedStays(t *testing.T) {
	m := message.NewMessage("1", nil)
	m.Metadata.Set("for", "a")
	o := outputOfWatermill("a", m, 1)
	m.Metadata.Set("for", "b")
	if o.meta["for"] != "a" {
		t.Errorf("topic a gets the metadata of %s", o.meta["for"])
	}
}

// TestPostedStays changes the headers of a posted message in one attempt to handle it.
func TestPostedStays(t *testing.T) {
	posted := &flow.Message{ID: "1", Type: "test.v1", Header: map[string]string{"attempt": "first"}}
	for range 2 {
		x := &tx{w: work{kind: fromPost, message: posted}}
		m, err := x.Message()
		if err != nil || m.Header["attempt"] != "first" {
			t.Errorf("got %v", m.Header)
		}
		m.Header["attempt"] = "another"
	}
}
