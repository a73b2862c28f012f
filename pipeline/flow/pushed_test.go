package flow

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

func TestPushedOverTheWire(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	p := pipeline.Pushed{
		URL: "HTTPS://Example.com", ContentType: "text/html", ContentLanguage: "de", Body: []byte("<p>x"), ID: "1", Time: at,
		Header: map[string]string{HeaderTrace: "t"},
	}
	m := PushedMessage(p)
	if m.Key != "https://example.com/" || m.Topic != TopicIngest || m.Trace != "t" {
		t.Errorf("got %+v, want the page as the key", m)
	}
	m, err := FromIngest(m.Metadata(), m.Body, "S/ingest/0/1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := PushedFrom(m)
	p.Header = nil
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("got %+v, %v, want %+v", got, err, p)
	}
	m, err = TakenMessage(p)
	if err != nil || m.Key != "https://example.com/" || m.Topic != TopicDocuments {
		t.Fatalf("got %+v, %v", m, err)
	}
	if m, err = FromMetadata(m.Metadata(), m.Body); err != nil {
		t.Fatal(err)
	}
	if got, err = TakenFrom(m); err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("taken: got %+v, %v, want %+v", got, err, p)
	}
	m.Body = m.Body[1:]
	if _, err := TakenFrom(m); err == nil {
		t.Error("a damaged body was taken")
	}
	text, err := PushedFrom(PushedMessage(pipeline.Pushed{URL: p.URL, Text: "x", ID: "1", ContentType: "text/html"}))
	if err != nil || text.ContentType != "text/plain; charset=utf-8" || string(text.Body) != "x" {
		t.Errorf("text: got %+v, %v", text, err)
	}
}

// TestPushedInGo: who wrote no headers is told of the fields.
func TestPushedInGo(t *testing.T) {
	for want, p := range map[string]pipeline.Pushed{
		"Pushed.URL":         {Text: "x"},
		"Pushed.ContentType": {URL: "https://a.example/", Body: []byte("x")},
	} {
		if _, err := PushedFrom(PushedMessage(p)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// TestFromIngest reads what other programs write.
func TestFromIngest(t *testing.T) {
	least := map[string]string{"ce_subject": "https://a.example/", "Content-Type": "text/plain"}
	m, err := FromIngest(least, []byte("x"), "S/ingest/0/1")
	if err != nil || m.Type != TypePage || m.ID == "" || m.Topic != TopicIngest || m.Position != "S/ingest/0/1" {
		t.Fatalf("got %+v, %v", m, err)
	}
	if p, err := PushedFrom(m); err != nil || p.ContentType != "text/plain" {
		t.Errorf("got %+v, %v, want the header whatever its case", p, err)
	}
	ids := map[string]bool{m.ID: true}
	for _, other := range []struct{ body, position string }{{"x", "S/ingest/0/2"}, {"x", ""}, {"y", ""}} {
		m, err := FromIngest(least, []byte(other.body), other.position)
		if err != nil || ids[m.ID] {
			t.Errorf("%+v: got %+v, %v, want an ID of its own", other, m, err)
		}
		ids[m.ID] = true
	}
	again, err := FromIngest(least, []byte("y"), "")
	if err != nil || !ids[again.ID] {
		t.Errorf("got %+v, %v, want the ID that it had before", again, err)
	}
	m, err = FromIngest(map[string]string{"ce_id": "7", "ce_subject": "https://a.example/", "ce_time": "today"}, []byte("x"), "")
	if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent || m.ID != "7" || m.Subject == "" || string(m.Body) != "x" {
		t.Errorf("got %+v, %v, want a permanent error and what is known", m, err)
	}
}

func TestWhatCannotBePushed(t *testing.T) {
	for want, change := range map[string]func(*Message){
		"ce_type":              func(m *Message) { m.Type = "com.example.x" },
		"no header ce_subject": func(m *Message) { m.Subject = "" },
		"not an absolute URL":  func(m *Message) { m.Subject = "/a" },
		"password":             func(m *Message) { m.Subject = "https://u:p@a.example/" },
		"no header content-ty": func(m *Message) { delete(m.Header, "content-type") },
		"mime":                 func(m *Message) { m.Header["content-type"] = "text/" },
		"empty":                func(m *Message) { m.Body = []byte(" \n") },
		"at most 4194304":      func(m *Message) { m.Body = bytes.Repeat([]byte("x"), pipeline.MaxPushed+1) },
	} {
		m := PushedMessage(pipeline.Pushed{URL: "https://a.example/", ContentType: "text/html", Body: []byte("x"), ID: "1"})
		if _, err := PushedFrom(m); err != nil {
			t.Fatal(err)
		}
		change(&m)
		_, err := PushedFrom(m)
		if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
