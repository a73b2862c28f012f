package flow

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
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
	m.Header = map[string]string{headerOutcome: o.Message().Metadata()[headerOutcome]}
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
	far, err := RequestFrom(Message{ID: m.ID, Type: m.Type, Body: m.Encoded()})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(near, far) {
		t.Errorf("in the process %+v, behind the wire %+v", near, far)
	}
	r.Check = 4
	m.Body = r.Message(time.Now()).Encoded()
	if got, err := RequestFrom(m); err != nil || got.Check != 4 {
		t.Errorf("with another body: check %d, %v; want 4", got.Check, err)
	}
	if _, err := RequestFrom(Message{ID: m.ID, Type: m.Type}); err == nil {
		t.Error("no body is a request")
	}
}

// TestOutcomeParts sends outcomes with everything that a body can hold, in the process and
// over a wire.
func TestOutcomeParts(t *testing.T) {
	body := &Body{URL: "http://a.example/b", ContentType: "text/html", ContentLanguage: "en", Packed: []byte("the body")}
	rebased := &Rebased{TextHash: "h", Title: "t", Extractor: "html/2", Packed: []byte("the text")}
	for _, tc := range []struct {
		name string
		o    Outcome
		want string
	}{
		{"nothing", Outcome{}, ""},
		{"text", Outcome{Packed: []byte("text")}, "text"},
		{"body", Outcome{Packed: []byte("text"), Body: body}, "textthe body"},
		{"rebased", Outcome{Packed: []byte("text"), Rebased: rebased}, "textthe text"},
		{"all", Outcome{Packed: []byte("text"), Body: body, Rebased: rebased, Screenshot: []byte("the picture")}, "textthe bodythe textthe picture"},
		{"picture", Outcome{Packed: []byte("text"), Screenshot: []byte("the picture")}, "textthe picture"},
		{"body of an unchanged text", Outcome{Body: body}, "the body"},
		{"failed", Outcome{Packed: []byte("text"), Rebased: &Rebased{Failed: "why"}}, "text"},
	} {
		m := tc.o.Message()
		if got := string(m.Body); got != tc.want {
			t.Errorf("%s: body %q, want %q", tc.name, got, tc.want)
		}
		near, err := OutcomeFrom(m)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		wire, err := FromMetadata(m.Metadata(), m.Body)
		if err != nil {
			t.Fatal(err)
		}
		far, err := OutcomeFrom(wire)
		if err != nil {
			t.Errorf("%s, over the wire: %v", tc.name, err)
		}
		if !reflect.DeepEqual(near, tc.o) || !reflect.DeepEqual(far, tc.o) {
			t.Errorf("%s: in the process %+v, over the wire %+v, want %+v", tc.name, near, far, tc.o)
		}
		if strings.Contains(m.Metadata()[headerOutcome], "the ") {
			t.Errorf("%s: the header holds what the body does: %s", tc.name, m.Metadata()[headerOutcome])
		}
		if len(tc.o.Packed) > 0 && near.Packed != nil && &near.Packed[0] != &m.Body[0] {
			t.Errorf("%s: the text was copied", tc.name)
		}
		if tc.o.Body == nil && tc.o.Rebased == nil && tc.o.Screenshot == nil {
			continue
		}
		for _, other := range [][]byte{nil, append(bytes.Clone(m.Body), 0), m.Body[:len(m.Body)-1]} {
			m.Body, wire.Body = other, other
			if _, err := OutcomeFrom(m); err == nil {
				t.Errorf("%s: a body of %d bytes was taken", tc.name, len(other))
			}
			if _, err := OutcomeFrom(wire); err == nil {
				t.Errorf("%s, over the wire: a body of %d bytes was taken", tc.name, len(other))
			}
		}
	}
}

// TestOutcomeWithoutFrames reads what was written before bodies travelled with texts.
func TestOutcomeWithoutFrames(t *testing.T) {
	m := Message{ID: "m", Type: TypeOutcome, Body: []byte("packed"),
		Header: map[string]string{headerOutcome: `{"page":"http://a.example/","check":3,"parts":1,"kind":"read","text_hash":"h"}`}}
	o, err := OutcomeFrom(m)
	if err != nil || string(o.Packed) != "packed" || o.Check != 3 || o.Body != nil || o.Rebased != nil {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestPackBody(t *testing.T) {
	noise := make([]byte, MaxStoredBody+1)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(noise)
	for _, tc := range []struct {
		name string
		body []byte
		ok   bool
	}{
		{"empty", nil, true},
		{"small", []byte("<p>x"), true},
		{"as large as can be", bytes.Repeat([]byte("x"), 2*pipeline.MaxText), true},
		{"too large", bytes.Repeat([]byte("x"), 2*pipeline.MaxText+1), false},
		{"too large packed", noise, false},
	} {
		packed, ok := PackBody(tc.body)
		if ok != tc.ok {
			t.Errorf("%s: got %v, want %v", tc.name, ok, tc.ok)
		}
		if !ok {
			continue
		}
		if got, err := UnpackText(packed); err != nil || got != string(tc.body) {
			t.Errorf("%s: %d bytes came back, %v", tc.name, len(got), err)
		}
	}
}

func FuzzOutcomeFrom(f *testing.F) {
	o := Outcome{Kind: OutcomeRead, Packed: []byte("text"), Body: &Body{Packed: []byte("body")}, Rebased: &Rebased{Packed: []byte("old")}}
	m := o.Message()
	f.Add(m.Metadata()[headerOutcome], m.Body)
	f.Add(`{"frames":{"packed":-1,"body":{},"body_size":9223372036854775807,"rebased_size":2}}`, []byte("x"))
	f.Add(`{"kind":"read"}`, []byte("x"))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		o, err := OutcomeFrom(Message{ID: "m", Header: map[string]string{headerOutcome: header}, Body: body})
		if err != nil {
			if c, _ := failure.ClassOf(err); c != failure.ClassPermanent {
				t.Errorf("%v is of class %d", err, c)
			}
			return
		}
		m := o.Message()
		wire, err := FromMetadata(Message{ID: "m", Type: TypeOutcome, Header: m.Metadata()}.Metadata(), m.Body)
		if err != nil {
			t.Fatal(err)
		}
		back, err := OutcomeFrom(wire)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Packed, o.Packed) || (back.Body == nil) != (o.Body == nil) || (back.Rebased == nil) != (o.Rebased == nil) {
			t.Errorf("%+v came back as %+v", o, back)
		}
	})
}
