package index

import (
	"slices"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

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
