package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// chainTopics declares a chain: group a handles "head" and emits to "private" and "public"; b and c handle those.
func chainTopics() map[string]flow.Topic {
	return map[string]flow.Topic{
		"head":    {Groups: []string{"a"}, Head: "a"},
		"private": {Groups: []string{"b"}, Chained: "b", Private: true},
		"public":  {Groups: []string{"c", "reader"}, Chained: "c"},
		"out":     {Groups: []string{"h"}},
	}
}

// chainMessage makes a message of the key k.
func chainMessage(topic, id string) flow.Message { return testMessage(topic, "k", id) }

// testChain: what a handler emits to a chain is handled before its commit, in order and each message with what follows
// from it. All of it becomes visible at once, and what a link reads of the others is what they wrote.
func testChain(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Topics: chainTopics()})
	var handled journal
	visible := func() string { return mustGet(t, tr.State("a", "k"), "n") + mustGet(t, tr.State("c", "k"), "n") }
	consume(t, tr, "b", "private", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		handled.add("k", "b."+m.ID)
		if got := mustGet(t, tx.StateOf("a", "k"), "n"); got != "1" {
			t.Errorf("a link reads %q of what the head wrote", got)
		}
		if err := tx.StateOf("a", "k").Set("n", nil); err == nil {
			t.Error("a link writes the state of another group")
		}
		tx.Emit(chainMessage("out", "b."+m.ID))
		tx.Emit(chainMessage("public", m.ID+".b"))
		return nil
	})
	consume(t, tr, "c", "public", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		handled.add("k", "c."+m.ID)
		tx.Emit(chainMessage("out", "c."+m.ID))
		st := tx.State("k")
		if got := visible(); got != "" {
			t.Errorf("%q is visible before the commit", got)
		}
		return st.Set("n", []byte(mustGet(t, st, "n")+"+"))
	})
	public, out := recordTopic(t, tr, "reader", "public"), recordTopic(t, tr, "h", "out")
	committed := make(chan string, 1)
	consume(t, tr, "a", "head", func(_ context.Context, tx flow.Tx, _ flow.Message) error {
		tx.Emit(chainMessage("out", "first"))
		tx.Emit(chainMessage("private", "1"))
		tx.Emit(chainMessage("public", "2"))
		tx.Emit(chainMessage("out", "between"))
		tx.Emit(chainMessage("private", "3"))
		tx.Emit(chainMessage("out", "last"))
		tx.OnCommit(func() { committed <- visible() })
		return tx.State("k").Set("n", []byte("1"))
	})
	mustPublish(t, tr, chainMessage("head", "m"))
	if got := receive(t, committed, "the commit"); got != "1+++" {
		t.Errorf("after the commit %q is visible", got)
	}
	waitUntilIdle(t, tr, nil)
	handled.want(t, "k", "b.1", "c.1.b", "c.2", "b.3", "c.3.b")
	public.want(t, "public", "1.b", "2", "3.b")
	out.want(t, "out", "first", "b.1", "c.1.b", "c.2", "between", "b.3", "c.3.b", "last")
}

// testChainSavepoint: an attempt at a message of a chain that fails, after it wrote and emitted, leaves no trace; the
// head is not handled again, and what it did stands.
func testChainSavepoint(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Topics: chainTopics()})
	var handled journal
	attempts := 0
	consume(t, tr, "b", "private", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type == flow.TypeWake {
			handled.add("k", "a wake of b")
			return nil
		}
		attempts++
		handled.add("k", "b")
		st := tx.State("k")
		if got := mustGet(t, st, "n"); got != "" {
			t.Errorf("attempt %d finds %q of an earlier one", attempts, got)
		}
		if err := st.Set("n", []byte("x")); err != nil {
			return err
		}
		tx.Emit(chainMessage("public", fmt.Sprint(attempts)))
		tx.Emit(chainMessage("out", fmt.Sprint("b", attempts)))
		if attempts == 3 { // what a stage does that gives a message up
			tx.Reset()
			tx.Emit(chainMessage("out", "dead"))
			return nil
		}
		tx.WakeAt("k", time.Now())
		tx.OnCommit(func() { t.Error("OnCommit of an attempt that was dropped") })
		return errors.New("rejected")
	})
	consume(t, tr, "c", "public", func(context.Context, flow.Tx, flow.Message) error {
		handled.add("k", "c")
		return nil
	})
	out := recordTopic(t, tr, "h", "out")
	recordTopic(t, tr, "reader", "public")
	consume(t, tr, "a", "head", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		handled.add("k", "a")
		tx.Emit(chainMessage("private", m.ID))
		tx.Emit(chainMessage("out", "a"))
		return tx.State("k").Set("n", []byte("1"))
	})
	mustPublish(t, tr, chainMessage("head", "m"))
	waitUntilIdle(t, tr, func() bool { return len(out.ids("out")) >= 2 })
	handled.want(t, "k", "a", "b", "b", "b")
	out.want(t, "out", "dead", "a")
	if got := mustGet(t, tr.State("a", "k"), "n") + mustGet(t, tr.State("b", "k"), "n"); got != "1" {
		t.Errorf("the state is %q", got)
	}
}

// testChainWakes: the wakes of a link come to it, survive a restart, and are never handled at the same time as the
// head.
func testChainWakes(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{Topics: chainTopics()})
	var busy atomic.Int32
	var mu sync.Mutex
	var woken []string
	start := func(tr flow.Transport, wakes bool) {
		alone := func(h handler) handler {
			return func(ctx context.Context, tx flow.Tx, m flow.Message) error {
				if busy.Add(1) > 1 {
					t.Error("two handlers of a chain are at work in a lane")
				}
				defer busy.Add(-1)
				return h(ctx, tx, m)
			}
		}
		consume(t, tr, "c", "public", alone(func(_ context.Context, tx flow.Tx, m flow.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if m.Type == flow.TypeWake {
				woken = append(woken, m.Key+mustGet(t, tx.State("k"), "n"))
				if wakes && len(woken) < 3 {
					tx.WakeAt("k", time.Unix(1, 0))
				}
				return tx.State("k").Set("n", []byte(fmt.Sprint(len(woken))))
			}
			at := time.Now().Add(shortDelay)
			if !wakes {
				at = time.Now().Add(time.Hour)
			}
			tx.WakeAt("k", at, flow.AtStart)
			return tx.State("k").Set("n", []byte("0"))
		}))
		recordTopic(t, tr, "reader", "public")
		consume(t, tr, "b", "private", func(context.Context, flow.Tx, flow.Message) error { return nil })
		consume(t, tr, "a", "head", alone(func(_ context.Context, tx flow.Tx, m flow.Message) error {
			if m.Type == flow.TypeWake {
				t.Error("the head got a wake of a link")
			}
			tx.Emit(chainMessage("public", m.ID))
			return nil
		}))
	}
	start(tr, true)
	mustPublish(t, tr, chainMessage("head", "m"))
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(woken)
	}
	waitUntilIdle(t, tr, func() bool { return count() >= 3 })
	if want := []string{"k0", "k1", "k2"}; !slices.Equal(woken, want) {
		t.Errorf("woken %v, want %v", woken, want)
	}
	if f.Volatile {
		return
	}
	mustClose(t, tr)
	tr = s.Open(t, Config{Topics: chainTopics()})
	start(tr, false)
	mustPublish(t, tr, chainMessage("head", "m2"))
	waitUntilIdle(t, tr, nil)
	mustClose(t, tr)
	tr = s.Open(t, Config{Topics: chainTopics()})
	start(tr, true)
	waitUntilIdle(t, tr, func() bool { return count() >= 4 })
	if got := count(); got != 4 {
		t.Errorf("woken %d times after a start, want once more than 3", got)
	}
}

// testChainKey: a message of a chain for another key is refused, and one that is published to a private topic.
func testChainKey(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Topics: chainTopics()})
	refused := make(chan error, 1)
	for group, topic := range map[string]string{"b": "private", "c": "public"} {
		consume(t, tr, group, topic, func(context.Context, flow.Tx, flow.Message) error { return nil })
	}
	consume(t, tr, "a", "head", func(_ context.Context, tx flow.Tx, _ flow.Message) error {
		tx.Emit(testMessage("private", "other", "1"))
		refused <- tx.Fits()
		tx.Reset()
		return tx.Fits()
	})
	mustPublish(t, tr, chainMessage("head", "m"))
	if err := receive(t, refused, "the handler"); err == nil {
		t.Error("a message of another key fits")
	}
	if err := tr.Publish(t.Context(), chainMessage("private", "1")); err == nil {
		t.Error("a message is published to a private topic")
	}
}
