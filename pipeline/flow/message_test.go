package flow

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

func TestMetadataRoundTrip(t *testing.T) {
	m := Message{
		ID: "id", Key: "http://example.com/", Type: TypeChange, Subject: "http://example.com/ä?q=%20",
		Time:   time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC),
		Trace:  TraceParent("x"),
		Header: map[string]string{"content-type": "application/json"}, Body: []byte("{}"),
	}
	meta := m.Metadata()
	for name, want := range map[string]string{"ce_specversion": "1.0", "ce_id": "id", "ce_type": TypeChange, "ce_source": SourceVokter, "ce_time": "2026-05-01T12:00:00.123456789Z"} {
		if meta[name] != want {
			t.Errorf("header %s is %q, want %q", name, meta[name], want)
		}
	}
	got, err := FromMetadata(meta, m.Body)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v, %v, want %+v", got, err, m)
	}
	if named := m.ForOthers("urn:acme"); named.Metadata()["ce_source"] != "urn:acme" || named.Metadata()["ce_dataschema"] != schemas+TypeChange+".json" {
		t.Errorf("as others read it: %v", named.Metadata())
	}
	for source, want := range map[string]string{"/crm": "/crm", "": "unknown"} {
		meta["ce_source"] = source
		if got, err := FromMetadata(meta, nil); err != nil || got.Source != want || got.Metadata()["ce_source"] != want {
			t.Errorf("source %q: got %+v, %v, want %q", source, got, err, want)
		}
	}
	for name, broken := range map[string]map[string]string{
		"no id":   {"ce_type": "x"},
		"no type": {"ce_id": "x"},
		"time":    {"ce_id": "x", "ce_type": "y", "ce_time": "yesterday"},
	} {
		broken[HeaderKey], broken["x"] = "key", "y"
		got, err := FromMetadata(broken, []byte("body"))
		if got.Key != "key" || got.Type != broken["ce_type"] || got.Source != "unknown" || got.Header["x"] != "y" || string(got.Body) != "body" {
			t.Errorf("%s: got %+v, want what is known of it", name, got)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if c, _ := failure.ClassOf(err); c != failure.ClassPermanent {
			t.Errorf("%s: class %v, want permanent", name, c)
		}
	}
}

func TestOutcomeRoundTrip(t *testing.T) {
	o := Outcome{
		Page: "http://example.com/", Incarnation: "s/documents/1/2", Check: 7, Part: 1, Parts: 2, Document: "d", Kind: OutcomeRead,
		Time: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Status: 200, Bytes: 5, Took: time.Second,
		BodyHash: "b", ETag: `"x"`, Title: "T", Language: "de", TextHash: "h", Extractor: "html/1", Packed: PackText("text"),
	}
	got, err := OutcomeFrom(o.Message())
	if err != nil || !reflect.DeepEqual(got, o) {
		t.Errorf("got %+v, %v, want %+v", got, err, o)
	}
	other := o
	other.Part = 0
	same := o
	if o.Message().ID == other.Message().ID || o.Message().ID != same.Message().ID {
		t.Error("IDs of outcomes must follow from what they say")
	}
	if _, err := OutcomeFrom(Message{ID: "x"}); err == nil {
		t.Error("a message without an outcome was read as one")
	}
}

func TestPackBounds(t *testing.T) {
	large := strings.Repeat("a", pipeline.MaxText)
	if got, err := UnpackText(PackText(large)); err != nil || got != large {
		t.Errorf("a text of the largest size: %v", err)
	}
	if got, err := UnpackText(PackText("ä\x02\n")); err != nil || got != "ä\x02\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestDerivedIDs(t *testing.T) {
	if DeriveID("a", "bc") == DeriveID("ab", "c") || DeriveID("a") == DeriveID("a", "") {
		t.Error("IDs must tell where a part ends")
	}
	id := DeriveID("a")
	if id != DeriveID("a") || len(id) != 26 || strings.ContainsAny(id, ".=abcdefghijklmnopqrstuvwxyz") {
		t.Errorf("ID %q, want 26 characters of 0-9A-V, always the same", id)
	}
}

func TestEvent(t *testing.T) {
	n := pipeline.Notification{Status: pipeline.StatusOK, ID: "ID", Type: pipeline.NotificationType, URL: "https://example.com/ä\r\nx: y\x85\uFFFE\uFDD0\xff", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	e, err := CloudEvent(n)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"ce_specversion": "1.0", "ce_id": "ID", "ce_type": TypeNotification, "ce_source": SourceVokter,
		"ce_subject": "https://example.com/äx: y", "ce_time": "2026-01-02T03:04:05Z", "content-type": "application/json", HeaderKey: "",
		"ce_dataschema": "https://github.com/vokter/vokter/blob/main/docs/schemas/vokter.notification.v1.json",
	}
	got := e.Metadata()
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: got %q, want %q", name, got[name], value)
		}
	}
	if !strings.Contains(string(e.Body), `"diffs":[]`) {
		t.Errorf("got the body %s, want no null", e.Body)
	}
	// An optional attribute that is empty is left out.
	if e, err = CloudEvent((pipeline.Notification{ID: "ID", Type: pipeline.NotificationTypeHealth})); err != nil || e.Type != TypeNotification {
		t.Errorf("got %v, %v, want a notification", e, err)
	}
	for _, name := range []string{"ce_subject", "ce_time"} {
		if v, ok := e.Metadata()[name]; ok {
			t.Errorf("%s is %q, want none", name, v)
		}
	}
	_, err = CloudEvent(pipeline.Notification{})
	if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent {
		t.Errorf("without an ID: got %v, want a permanent error", err)
	}
}

func TestDocumentIDTellsViewsApart(t *testing.T) {
	views := []pipeline.View{
		{},
		{Select: []pipeline.Selector{{CSS: "main"}}},
		{Remove: []pipeline.Selector{{CSS: "main"}}},
		{Select: []pipeline.Selector{{From: "main"}}},
		{Select: []pipeline.Selector{{From: "main", To: "nav"}}},
		{Select: []pipeline.Selector{{CSS: "main"}, {CSS: "nav"}}},
		{Select: []pipeline.Selector{{CSS: "main"}}, Remove: []pipeline.Selector{{CSS: "nav"}}},
		{Ignore: []string{"main"}},
		{Confirm: 2},
	}
	seen := map[string]int{}
	for i, v := range views {
		id := DocumentID("http://example.com/", v)
		if j, ok := seen[id]; ok {
			t.Errorf("views %d and %d have one ID", i, j)
		}
		seen[id] = i
		if other := DocumentID("http://example.com/b", v); other == id {
			t.Errorf("view %d has one ID on two pages", i)
		}
	}
	if DocumentID("p", pipeline.View{}) != DocumentID("p", pipeline.View{Confirm: 1}) {
		t.Error("confirm 1 is what happens anyway, and must not be another document")
	}
}

func TestCheckSource(t *testing.T) {
	for source, ok := range map[string]bool{
		"": true, "https://vokter.example.com": true, "urn:acme:vokter": true,
		"vokter": false, "https://user@example.com": false, "urn:a b": false, "urn:a\n": false, ":": false,
	} {
		if err := CheckSource(source); (err == nil) != ok {
			t.Errorf("%q: %v", source, err)
		}
	}
}
