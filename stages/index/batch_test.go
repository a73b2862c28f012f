package index

import (
	"slices"
	"testing"

	"github.com/vokter/vokter/pipeline"
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
	handle := func(m pipeline.Message) {
		tx := sharing{d.store.Begin(), &later}
		if err := d.stage.Process(pipeline.WithTx(t.Context(), tx), tx, m); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
	}
	list := []byte(`{"url":"` + page + `","origin":"yaml","client":"c","subscriptions":[{"url":"` + page + `","client":"c","keywords":["stock"],"sinks":["s"]}]}`)
	for _, position := range []string{"S/documents/0/0", "S/documents/0/1"} {
		handle(pipeline.Message{ID: position, Topic: pipeline.TopicDocuments, Key: page, Type: pipeline.TypeApply, Body: list, Position: position})
	}
	for _, m := range d.store.Due(d.now) {
		handle(m)
	}
	for _, f := range later {
		f()
	}
	for _, m := range d.store.Take() {
		if m.Type == pipeline.TypeRequest {
			d.request = body[pipeline.Request](d, m)
		}
	}
	d.answer("z")
	if !slices.Contains(d.notes, pipeline.KindVersion) || !d.stage.Finished() {
		t.Errorf("the outcome was dropped: %q", d.notes)
	}
}
