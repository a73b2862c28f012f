package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// testTail listens to an ephemeral topic that no group reads, where the transport tells what
// other processes publish: it hears what was committed, once the state can be read, and what
// came from outside of a handler.
func testTail(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}, "told": {Feedback: true, Ephemeral: true}}})
	mustPublish(t, tr, testMessage("told", "k", "too early"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told, err := tr.Tail(ctx, "told")
	if err != nil {
		t.Fatal(err)
	}
	attempts := 0
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		attempts++
		tx.Sync()
		tx.Emit(testMessage("told", m.Key, fmt.Sprint("attempt", attempts)))
		if err := tx.State(m.Key).Set("attempt", fmt.Append(nil, attempts)); err != nil {
			return err
		}
		if attempts < 3 {
			return errors.New("rejected")
		}
		return nil
	})
	mustPublish(t, tr, testMessage("in", "k", "1"))
	m := receive(t, told, "what a handler published")
	if m.ID != "attempt3" || m.Topic != "told" || m.Type != "test.v1" || string(m.Body) != m.ID {
		t.Errorf("heard %+v, want what the attempt published that was committed", m)
	}
	if got := mustGet(t, tr.State("g", "k"), "attempt"); got != "3" {
		t.Errorf("the state is %q when its message is heard", got)
	}
	mustPublish(t, tr, testMessage("told", "other", "outside"))
	if m := receive(t, told, "what was published outside"); m.ID != "outside" {
		t.Errorf("heard %s, want what was published outside", m.ID)
	}
	cancel()
	if m, more := <-told; more {
		t.Errorf("heard %s after the end", m.ID)
	}
}
