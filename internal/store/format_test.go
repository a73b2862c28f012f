package store

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

func TestRecordRoundTrip(t *testing.T) {
	want := Record{Time: time.UnixMilli(1234567890123).UTC(), ID: "id", Meta: map[string]string{"a": "", "": "b", "c\x00": "d"}, Payload: []byte("body")}
	got, err := parseRecord(appendRecord(nil, want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("parseRecord = %+v, %v, want %+v", got, err, want)
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add(appendRecord(nil, Record{ID: "id", Meta: map[string]string{"a": "b"}, Payload: []byte("p")}))
	f.Add([]byte{recordFormat, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err != nil {
			return
		}
		again, err := parseRecord(appendRecord(nil, r))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%+v came back as %+v (%v)", r, again, err)
		}
	})
}

func FuzzKeys(f *testing.F) {
	f.Add("a", "a\x00")
	f.Add("", "\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		ka, kb := appendKeyString(nil, a), appendKeyString(nil, b)
		if got, want := slices.Compare(ka, kb), strings.Compare(a, b); got != want {
			t.Errorf("keys of %q and %q compare as %d, want %d", a, b, got, want)
		}
		if a != b && strings.HasPrefix(string(ka), string(kb)) {
			t.Errorf("the key of %q begins with that of %q", a, b)
		}
		s, rest, err := cutKeyString(append(ka, "rest"...))
		if s != a || string(rest) != "rest" || err != nil {
			t.Errorf("cutString of %q = %q, %q, %v", a, s, rest, err)
		}
	})
}

// TestMemoryOfRecord: a record takes the memory that its message holds, too, so that a lane keeps few large ones.
func TestMemoryOfRecord(t *testing.T) {
	m := flow.Outcome{Page: "https://example.com/", Text: strings.Repeat("word ", 10_000)}.Message()
	r := Record{Message: &m, Payload: m.Body}
	if got, least := r.Memory(), len(m.Body)+50_000; got < least || got > least+1000 {
		t.Errorf("a record with a text of 50,000 bytes beside its body takes %d", got)
	}
	if got, least := r.Size(), len(m.Body); got < least || got > least+1000 {
		t.Errorf("in a log of %d bytes it takes %d", len(m.Body), got)
	}
}
