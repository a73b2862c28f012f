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
