package flow

import (
	"testing"
	"time"
)

// TestSnapshot: a snapshot stays in its process, and its headers name it.
func TestSnapshot(t *testing.T) {
	made := Snapshot{
		Page: "p", Incarnation: "i", Document: "d", N: 2, Previous: 1, Check: 3, Time: time.Now(), TextHash: "h",
		New: "new\n", OldTokens: []byte{1}, OldPacked: PackText("old\n"), Analysis: new(int),
	}
	m := made.Message()
	got, err := SnapshotFrom(m)
	if err != nil || got.Analysis != made.Analysis || got.Size() == 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := got.Unpack(); err != nil || got.Old != "old\n" {
		t.Errorf("the old text is %q, %v", got.Old, err)
	}
	wire, err := FromMetadata(m.Metadata(), m.Encoded())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := SnapshotFrom(wire); err == nil {
		t.Error("a snapshot was read in another process")
	}
	dead := DeadLetter{Headers: m.Metadata(), Time: time.Unix(7, 0)}
	command, ok, err := dead.Again()
	if err != nil || !ok || command.Topic != TopicDocuments || command.Key != "p" || !(DeadFilter{URL: ""}).Selects(dead) {
		t.Fatalf("it is brought back by %+v, %v, %v", command, ok, err)
	}
	if name, err := SnapshotNameFrom(command); err != nil || name != (SnapshotName{"p", "i", "d", 2}) {
		t.Errorf("the command names %+v, %v", name, err)
	}
	change := Change{Page: "p", Incarnation: "i", Document: "d", Version: 2}.Message()
	other, ok, err := DeadLetter{Headers: change.Metadata(), Body: change.Encoded(), Time: time.Unix(7, 0)}.Again()
	if err != nil || !ok || other.ID != command.ID {
		t.Errorf("its change is brought back by %+v, %v, %v", other, ok, err)
	}
	if _, ok, err := (DeadLetter{Headers: map[string]string{headerType: TypePushed}}).Again(); ok || err != nil {
		t.Errorf("a pushed page is brought back: %v, %v", ok, err)
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
