package index

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// TestMemoryIsAskedFor: a version is stored once there is memory for its text, which is given
// back; nothing is stored where there is none in time.
func TestMemoryIsAskedFor(t *testing.T) {
	var asked, held int64
	var refusal error
	d := newDesk(t, Config{Memory: func(_ context.Context, bytes int64) (func(), error) {
		if refusal != nil {
			return nil, refusal
		}
		asked = bytes
		held += bytes
		return func() { held -= bytes }, nil
	}})
	d.subscribe("c")
	first := strings.Repeat("one line\n", 100)
	d.answer(first)
	if want := int64(memoryFor * len(first)); asked != want || held != 0 {
		t.Errorf("asked for %d bytes, want %d; %d were not given back", asked, want, held)
	}
	d.wake()
	refusal = errors.New("stopping")
	m := fetched(d.request, 0, first+"another\n").Message()
	m.Position = "S/documents/0/99"
	if err := d.store.Handle(t.Context(), d.stage, m); !errors.Is(err, refusal) {
		t.Errorf("got %v, want the refusal", err)
	}
	if _, ok, err := LoadVersion(d.store.Begin().State(page), whole, 2); ok || err != nil {
		t.Errorf("there is a version 2 (%v)", err)
	}
	refusal = nil
	d.answer(first + "another\n")
	if got := d.types(); len(got) == 0 || got[0] != flow.TypeSnapshot {
		t.Errorf("got %v, want a snapshot", got)
	}
}

// sharing is a transaction whose commit comes with that of others.
type sharing struct {
	*txtest.Tx
	later *[]func()
}

func (s sharing) OnCommit(f func()) { *s.later = append(*s.later, f) }

// TestMessagesOfOneCommit: a transport may commit several messages of a page together. What
// the first asked for is not lost to the second, though it is not committed.
func TestMessagesOfOneCommit(t *testing.T) {
	d := newDesk(t, Config{Checks: 1})
	d.stage.Expect(page)
	var later []func()
	handle := func(m flow.Message) {
		tx := sharing{d.store.Begin(), &later}
		if err := d.stage.Process(flow.WithTx(t.Context(), tx), tx, m); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
	}
	list := []byte(`{"url":"` + page + `","origin":"yaml","client":"c","subscriptions":[{"url":"` + page + `","client":"c","keywords":["stock"],"sinks":["s"]}]}`)
	for _, position := range []string{"S/documents/0/0", "S/documents/0/1"} {
		handle(flow.Message{ID: position, Topic: flow.TopicDocuments, Key: page, Type: flow.TypeApply, Body: list, Position: position})
	}
	for _, m := range d.store.Due(d.now) {
		handle(m)
	}
	for _, f := range later {
		f()
	}
	for _, m := range d.store.Take() {
		if m.Type == flow.TypeRequest {
			d.request = body[flow.Request](d, m)
		}
	}
	d.answer("z")
	if !slices.Contains(d.notes, flow.KindVersion) || !d.stage.Finished() {
		t.Errorf("the outcome was dropped: %q", d.notes)
	}
}
