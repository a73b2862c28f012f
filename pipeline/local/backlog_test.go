package local

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestWakesAtStartComeBehindTheLog: what came of the work that a wake at start takes for
// dead may be in the log already, and is handled first.
func TestWakesAtStartComeBehindTheLog(t *testing.T) {
	c := Config{Store: memory(t), Topics: map[string]Topic{"in": {Groups: []string{"g"}}}}
	tr, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Publish(t.Context(), text("in", "k", "first", 1)); err != nil {
		t.Fatal(err)
	}
	m := <-subscribe(t, tr, "g", "in")
	tx, _ := flow.TxFrom(m.Context())
	tx.WakeAt("k", time.Now().Add(time.Hour), flow.AtStart)
	m.Ack()
	for !tr.Idle() {
		time.Sleep(time.Millisecond)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}

	tr = open(t, c)
	const n = 5
	var want, got []string
	for i := range n {
		want = append(want, fmt.Sprint(i))
		if err := tr.Publish(t.Context(), text("in", "k", fmt.Sprint(i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	want = append(want, flow.TypeWake)
	in := subscribe(t, tr, "g", "in")
	for range n + 1 {
		m := <-in
		if id := m.Metadata["ce_type"]; id == flow.TypeWake {
			got = append(got, id)
		} else {
			got = append(got, m.UUID)
		}
		m.Ack()
	}
	if !slices.Equal(got, want) {
		t.Errorf("came %v, want %v", got, want)
	}
}
