package pipelinetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// Breaker is a Site whose disk can fail.
type Breaker interface {
	Site
	// Break makes reads from the disk fail, or work again.
	Break(broken bool)
}

// testBrokenReads lets the disk fail under handlers: what they cannot read is an error of
// failure.ClassBroken, and what they did not do then they do, once, when it works again.
func testBrokenReads(t *testing.T, _ Features, s Site) {
	b, ok := s.(Breaker)
	if !ok {
		t.Skip("the disk of this site cannot fail")
	}
	const keys = 50
	random := rand.NewChaCha8([32]byte{})
	var failed atomic.Int64
	add := func(_ context.Context, tx flow.Tx, m flow.Message) error {
		st := tx.State(m.Key)
		v, _, err := st.Get("v")
		if err != nil {
			failed.Add(1)
			if class, _ := failure.ClassOf(err); class != failure.ClassBroken {
				t.Errorf("a read gave %v, of class %d", err, class)
			}
			return err
		}
		if len(v) == 0 {
			v = make([]byte, 4096)
			_, _ = random.Read(v) // or it would be packed into what was read already
		}
		return st.Set("v", append(v, m.ID...))
	}
	tr := s.Open(t, Config{})
	stop := consume(t, tr, "g", "in", add)
	for i := range keys {
		mustPublish(t, tr, testMessage("in", fmt.Sprint(i), "a"))
		waitUntilIdle(t, tr, nil)
	}
	stop()
	mustClose(t, tr)
	tr = s.Open(t, Config{})
	b.Break(true)
	consume(t, tr, "g", "in", add)
	for i := range keys {
		mustPublish(t, tr, testMessage("in", fmt.Sprint(i), "b"))
	}
	for failed.Load() == 0 {
		if tr.Idle() {
			t.Fatal("nothing was read from the disk")
		}
	}
	b.Break(false)
	waitUntilIdle(t, tr, nil)
	for i := range keys {
		if v := mustGet(t, tr.State("g", fmt.Sprint(i)), "v"); len(v) != 4098 || v[4096:] != "ab" {
			t.Errorf("key %d: %d bytes that end with %q, want one a and one b", i, len(v), v[min(len(v), 4096):])
		}
	}
}
