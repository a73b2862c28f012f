package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// TestReceiverForm: the form of a receiver comes from the description of its kind. It shows no secret and keeps those
// that are set, names all mistakes beside their fields, and says what is paused.
func TestReceiverForm(t *testing.T) {
	b := logIn(t, new(fake), aToken)
	_, body := b.get(t, "/receivers")
	if want := `<option value="hook">hook</option>`; !strings.Contains(body, want) {
		t.Errorf("%s is missing in %s", want, body)
	}
	_, body = b.get(t, "/receiver?sink=mine")
	rare := strings.Index(body, "<details>")
	for _, want := range []string{`name="o.url" autocomplete="off"`, `name="keep" value="url" checked`, "Who gets it_now. One on each line.", `name="paused" value="yes"`, `name="o.to" rows="3"`} {
		if at := strings.Index(body, want); at < 0 || at > rare {
			t.Errorf("%s is not above the rare options in %s", want, body)
		}
	}
	for _, want := range []string{`name="o.tls.insecure" value="true"`, `name="o.body"`, `placeholder="5"`} {
		if at := strings.Index(body, want); at < rare {
			t.Errorf("%s is not among the rare options in %s", want, body)
		}
	}
	const secret = "https://example.com/a-secret"
	form := url.Values{"kind": {"hook"}, "sink": {"mine"}, "o.url": {secret}, "o.to": {"a\r\nb"}, "keep": {"url"}, "paused": {"yes"}, "o.unknown": {"x"}}
	b.sinks.err = errors.Join(&pipeline.FieldError{Field: "options.to", Reason: "b is nobody"}, &pipeline.FieldError{Field: "options.url", Reason: "it is closed"}, &pipeline.FieldError{Field: "sink", Reason: "not this one"})
	r, body := b.post(t, "/receiver", form)
	if r.StatusCode != http.StatusOK || !strings.Contains(body, "B is nobody.") || !strings.Contains(body, "It is closed.") || !strings.Contains(body, "Not this one.") || strings.Contains(body, secret) || !strings.Contains(body, "2 mistakes stand") {
		t.Errorf("mistakes: %s %s", r.Status, body)
	}
	b.sinks.err = nil
	r, _ = b.post(t, "/receiver", form)
	last := b.sinks.put[len(b.sinks.put)-1]
	if r.Header.Get("Location") != "/receivers" || last.Sink != "mine" || last.Kind != "hook" || !last.Paused || last.Options["url"] != secret || last.Options["to"] != "a\r\nb" || len(last.Options) != 2 || last.Secrets[0] != "url" {
		t.Errorf("saved: %s, %+v", r.Status, last)
	}
	for action, want := range map[string]string{"resume-receiver": "mine", "remove-receiver": "removed mine"} {
		r, _ := b.post(t, "/do/"+action, url.Values{"sink": {"mine"}, "sure": {"yes"}, "back": {"/receivers"}})
		if last := b.sinks.put[len(b.sinks.put)-1]; r.StatusCode != http.StatusSeeOther || last.Sink != want || last.Paused {
			t.Errorf("%s: %s, %+v", action, r.Status, last)
		}
	}
	if r, _ := b.post(t, "/do/remove-receiver", url.Values{"sink": {"mine"}}); r.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("removed without a confirmation: %s", r.Status)
	}
	if r, _ := b.get(t, "/receiver?sink=another"); r.StatusCode != http.StatusNotFound {
		t.Errorf("another receiver: %s", r.Status)
	}
	for _, token := range []string{"acme", "reader"} {
		other := logIn(t, new(fake), token)
		if r, _ := other.get(t, "/receiver?sink=mine"); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", token, r.Status)
		}
		if r, _ := other.post(t, "/receiver", form); r.StatusCode != http.StatusForbidden || len(other.sinks.put) > 0 {
			t.Errorf("%s saves: %s", token, r.Status)
		}
	}
}
