package flow

import (
	"reflect"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// TestOutcomeTravels compares what a receiver in the same process gets with what one gets
// behind a wire.
func TestOutcomeTravels(t *testing.T) {
	o := Outcome{
		Page: "http://a.example/", Incarnation: "i", Check: 3, Part: 1, Parts: 2, Document: "d", Kind: OutcomeRead,
		Time: time.Now(), RetryAfter: time.Second, Status: 200, Bytes: 7, Took: time.Millisecond,
		BodyHash: "b", ETag: `"e"`, Title: "t", Language: "en", TextHash: "h", Extractor: "x", Packed: []byte("packed"),
	}
	m := o.Message()
	near, err := OutcomeFrom(m)
	if err != nil {
		t.Fatal(err)
	}
	meta := m.Metadata()
	wire, err := FromMetadata(meta, m.Body)
	if err != nil {
		t.Fatal(err)
	}
	far, err := OutcomeFrom(wire)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(near, far) {
		t.Errorf("in the process %+v, behind the wire %+v", near, far)
	}
	o.Time = o.Time.Round(0).UTC()
	if !reflect.DeepEqual(near, o) {
		t.Errorf("got %+v, want %+v", near, o)
	}

	o.Kind, o.Status = OutcomeFailed, 500
	m.Header[headerOutcome] = o.Message().Metadata()[headerOutcome]
	if got, err := OutcomeFrom(m); err != nil || got.Status != 500 {
		t.Errorf("with another header: status %d, %v; want 500", got.Status, err)
	}
	if got, want := m.Metadata()[headerOutcome], m.Header[headerOutcome]; got != want {
		t.Errorf("a header that was set was written over with %s", got)
	}
}

func TestRequestTravels(t *testing.T) {
	r := Request{
		Page: "http://a.example/x", Incarnation: "i", Check: 3, ETag: `"e"`, BodyHash: "b",
		Documents: []RequestDocument{{ID: "d", View: pipeline.View{Select: []pipeline.Selector{{CSS: "p"}}}, TextHash: "h"}}, NotAfter: time.Now(),
	}
	m := r.Message(time.Now())
	if m.Key != "a.example:80" || m.Subject != r.Page {
		t.Errorf("key %q, subject %q", m.Key, m.Subject)
	}
	near, err := RequestFrom(m)
	if err != nil {
		t.Fatal(err)
	}
	far, err := RequestFrom(Message{ID: m.ID, Type: m.Type, Body: m.Body})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(near, far) {
		t.Errorf("in the process %+v, behind the wire %+v", near, far)
	}
	r.Check = 4
	m.Body = r.Message(time.Now()).Body
	if got, err := RequestFrom(m); err != nil || got.Check != 4 {
		t.Errorf("with another body: check %d, %v; want 4", got.Check, err)
	}
	m.Body = nil
	if _, err := RequestFrom(m); err == nil {
		t.Error("no body is a request")
	}
}
