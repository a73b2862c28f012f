package flow

import (
	"reflect"
	"testing"
	"time"
)

type analysis struct{ words int }

func (a *analysis) Bytes() int { return 16 * a.words }

// TestSnapshotTravels compares what a receiver in the same process gets with what one gets behind a wire:
// only the first gets what the maker knows of the new text, as long as the message has that text.
func TestSnapshotTravels(t *testing.T) {
	made := Snapshot{
		Page: "p", Incarnation: "i", Document: "d", N: 2, Previous: 1, Check: 3, Time: time.Now(), TextHash: "h",
		New: "new\n", OldTokens: []byte{1}, NewTokens: []byte{2}, OldPacked: PackText("old\n"), NewPacked: PackText("new\n"), Analysis: &analysis{2},
	}
	m := made.Message()
	if got, want := m.Held(), len("new\n")+32; got != want {
		t.Errorf("the message holds %d bytes, want %d", got, want)
	}
	want := made
	want.Time, want.Old, want.OldPacked, want.NewPacked = made.Time.Round(0).UTC(), "old\n", nil, nil
	if got, err := SnapshotFrom(m); err != nil || !reflect.DeepEqual(got, want) || got.Analysis != made.Analysis {
		t.Errorf("in the process: got %+v, %v, want %+v", got, err, want)
	}
	want.Analysis = nil
	wire, err := FromMetadata(m.Metadata(), m.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := SnapshotFrom(wire); err != nil || !reflect.DeepEqual(got, want) || wire.Held() != 0 {
		t.Errorf("behind the wire: got %+v, %v, want %+v", got, err, want)
	}
	other := Snapshot{Old: "older\n", New: "newer\n"}.Message()
	m.Body = other.Body
	if got, err := SnapshotFrom(m); err != nil || got.Old != "older\n" || got.New != "newer\n" || got.Analysis != nil || got.Page != "p" {
		t.Errorf("with another body: got %+v, %v", got, err)
	}
	m.Header = map[string]string{headerSnapshot: `{"page":"q"}`}
	if got, err := SnapshotFrom(m); err != nil || got.Page != "q" || got.New != "newer\n" {
		t.Errorf("with another header: got %+v, %v", got, err)
	}
}

// TestTextOfOutcome: the text of an outcome stays with its message in the process that read it, as long as
// the message has that text.
func TestTextOfOutcome(t *testing.T) {
	o := Outcome{Kind: OutcomeRead, Text: "text\n", Packed: PackText("text\n"), Body: &Body{Packed: []byte("body")}}
	m := o.Message()
	wire, err := FromMetadata(m.Metadata(), m.Body)
	if err != nil {
		t.Fatal(err)
	}
	changed := m
	changed.Body = append([]byte(nil), m.Body...)
	changed.Body[0]++
	for _, tc := range []struct {
		name string
		in   Message
		text string
		held int
	}{{"in the process", m, "text\n", 5}, {"behind the wire", wire, "", 0}, {"with another body", changed, "", 5}} {
		got, err := OutcomeFrom(tc.in)
		if err != nil || got.Text != tc.text || tc.in.Held() != tc.held {
			t.Errorf("%s: the text is %q, %v, and the message holds %d bytes", tc.name, got.Text, err, tc.in.Held())
		}
		if content, err := got.Content(); (err != nil || content != "text\n") && tc.name != "with another body" {
			t.Errorf("%s: the content is %q, %v", tc.name, content, err)
		}
	}
}
