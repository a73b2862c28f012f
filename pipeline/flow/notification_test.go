package flow

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestListedHoldsNoPassword: what is shown of a message that could not be handled has neither
// its body nor what may be a password in its URL.
func TestListedHoldsNoPassword(t *testing.T) {
	const url = "https://bob:hunter2@example.com/x"
	d := DeadLetter{Topic: TopicIngest, Headers: map[string]string{headerSubject: url, HeaderKey: url, headerID: "1"}, Body: []byte("text")}
	b, err := json.Marshal(d.Listed())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2", "bob", "body"} {
		if strings.Contains(string(b)+d.URL(), secret) {
			t.Errorf("%s and %s show %q", b, d.URL(), secret)
		}
	}
	if d.Headers[headerSubject] != url || d.Listed().Headers[headerID] != "1" {
		t.Errorf("got %v of %v", d.Listed().Headers, d.Headers)
	}
	if !(DeadFilter{URL: url, Messages: true}).Selects(d) {
		t.Error("it is not found by its URL")
	}
}

// TestDeadLettersAreSmall: whatever the message was that could not be handled, its dead letter
// can be published.
func TestDeadLettersAreSmall(t *testing.T) {
	long := strings.Repeat("\xff", 5<<20)
	d := DeadLetter{Reason: "bad: " + long, Headers: map[string]string{"x": long}, Body: []byte(long)}
	m := d.Message("id", long, long)
	if n := len(m.Body) + len(m.Key) + len(m.Subject); n > 1<<20 {
		t.Errorf("it has %d bytes", n)
	}
	var got DeadLetter
	if err := json.Unmarshal(m.Body, &got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bad: ", "its body of 5242880 bytes is not kept", "its headers of 5242881 bytes are not kept"} {
		if !strings.Contains(got.Reason, want) {
			t.Errorf("the reason does not say %q", want)
		}
	}
	if other := d.Message("id", long+"x", ""); m.Key == "" || m.Key == other.Key {
		t.Errorf("two keys became one: %q", m.Key)
	}
}
