package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
)

// testCommitIsAtomic looks, from within a handler and from outside, for what must not be
// visible before the commit, and must be after it.
func testCommitIsAtomic(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	mustPublish(t, tr, testMessage("in", "k", "1"))
	out := recordTopic(t, tr, "h", "out")
	wrote, end := make(chan struct{}), make(chan struct{})
	committed := make(chan string, 2)
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type == flow.TypeWake {
			return nil
		}
		st := tx.State("k")
		for _, name := range []string{"a", "b", "c"} {
			if err := st.Set(name, []byte(name)); err != nil {
				return err
			}
		}
		if err := st.Delete("b"); err != nil {
			return err
		}
		if v, ok, err := st.Get("a"); string(v) != "a" || !ok || err != nil {
			t.Errorf("a transaction reads %q, %v, %v of what it wrote", v, ok, err)
		}
		var names []string
		for name, v := range st.Scan("") {
			names = append(names, name+"="+string(v.Bytes))
		}
		if want := []string{"a=a", "c=c"}; !slices.Equal(names, want) {
			t.Errorf("a transaction scans %v, want %v", names, want)
		}
		tx.Emit(testMessage("out", "k", "o1"))
		tx.Emit(testMessage("out", "k", "o2"))
		tx.OnCommit(func() { committed <- mustGet(t, tr.State("g", "k"), "a") })
		tx.OnCommit(func() { committed <- "second" })
		wrote <- struct{}{}
		return waitForRelease(t, end)
	})
	receive(t, wrote, "the handler")
	if _, ok, err := tr.State("g", "k").Get("a"); ok || err != nil {
		t.Errorf("state is visible before the commit (%v, %v)", ok, err)
	}
	if got := out.ids("out"); len(got) > 0 || len(committed) > 0 {
		t.Errorf("outputs %v and %d OnCommit calls before the commit", got, len(committed))
	}
	close(end)
	if got := receive(t, committed, "OnCommit"); got != "a" {
		t.Errorf("OnCommit sees %q", got)
	}
	if got := receive(t, committed, "OnCommit"); got != "second" {
		t.Errorf("OnCommit functions ran out of order: %q", got)
	}
	waitUntilIdle(t, tr, nil)
	out.want(t, "out", "o1", "o2")
	if _, ok, _ := tr.State("g", "k").Get("b"); ok {
		t.Error("a deleted name is there")
	}
}

// writeUncommitted writes, emits and schedules what must vanish when its attempt is dropped.
func writeUncommitted(t *testing.T, tx flow.Tx) {
	if err := tx.State("k").Set("lost", []byte("x")); err != nil {
		t.Error(err)
	}
	if err := tx.State("k").Delete("kept"); err != nil {
		t.Error(err)
	}
	tx.Emit(testMessage("out", "k", "lost"))
	tx.EmitAll(testMessage("out", "", "lost in all lanes"))
	tx.WakeAt("k", time.Now())
	tx.OnCommit(func() { t.Error("OnCommit of an attempt that was dropped") })
}

// checkDropped runs attempt until it succeeds, and checks that nothing is left of what it did before that.
func checkDropped(t *testing.T, s Site, attempt func(n int, tx flow.Tx) error) {
	tr := s.Open(t, Config{})
	var in journal
	out := recordTopic(t, tr, "h", "out")
	mustPublish(t, tr, testMessage("in", "k", "set"), testMessage("in", "k", "try"))
	attempts := 0
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		in.add("in", m.ID)
		if m.ID == "set" {
			return tx.State("k").Set("kept", []byte("v"))
		}
		attempts++
		return attempt(attempts, tx)
	})
	waitUntilIdle(t, tr, nil)
	if got := in.ids("in"); slices.ContainsFunc(got, func(id string) bool { return id != "set" && id != "try" }) {
		t.Errorf("a wake of a dropped attempt came: %v", got)
	}
	out.want(t, "out", "done")
	if _, ok, err := tr.State("g", "k").Get("lost"); ok || err != nil {
		t.Errorf("a dropped write is there (%v, %v)", ok, err)
	}
	if got := mustGet(t, tr.State("g", "k"), "kept"); got != "v" {
		t.Errorf("a dropped deletion happened: %q", got)
	}
}

func testRejectionDropsAll(t *testing.T, _ Features, s Site) {
	checkDropped(t, s, func(n int, tx flow.Tx) error {
		if _, ok, err := tx.State("k").Get("lost"); ok || err != nil {
			t.Errorf("attempt %d finds what an earlier one wrote (%v, %v)", n, ok, err)
		}
		if n < 4 {
			writeUncommitted(t, tx)
			return errors.New("rejected")
		}
		tx.Emit(testMessage("out", "k", "done"))
		return nil
	})
}

func testResetDropsAll(t *testing.T, _ Features, s Site) {
	checkDropped(t, s, func(_ int, tx flow.Tx) error {
		for range 3 {
			writeUncommitted(t, tx)
			tx.Reset()
			if _, ok, err := tx.State("k").Get("lost"); ok || err != nil {
				t.Errorf("Reset left what was written (%v, %v)", ok, err)
			}
		}
		tx.Emit(testMessage("out", "k", "done"))
		return nil
	})
}

// testPublisherJoinsTransaction publishes with Watermill's interface from a handler, which changes its message then.
func testPublisherJoinsTransaction(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	pub := tr.Publisher()
	mustPublish(t, tr, testMessage("in", "k", "1"))
	var out journal
	consume(t, tr, "h", "out", func(_ context.Context, _ flow.Tx, m flow.Message) error {
		if m.Type != "test.v1" {
			t.Errorf("what was published has the type %s, which was set afterwards", m.Type)
		}
		out.add("out", m.ID)
		return nil
	})
	attempts := 0
	consume(t, tr, "g", "in", func(ctx context.Context, tx flow.Tx, _ flow.Message) error {
		attempts++
		id := fmt.Sprint("attempt", attempts)
		m := testMessage("out", "k", id)
		wm := message.NewMessageWithContext(ctx, id, m.Body)
		wm.Metadata = m.Metadata()
		if err := pub.Publish("out", wm); err != nil {
			return err
		}
		wm.Metadata.Set("ce_type", "changed.v1")
		if attempts < 3 {
			return errors.New("rejected")
		}
		return nil
	})
	waitUntilIdle(t, tr, nil)
	out.want(t, "out", "attempt3")
}

// testTransactionsEnd uses a transaction after its commit.
func testTransactionsEnd(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	mustPublish(t, tr, testMessage("in", "k", "1"))
	txs := make(chan flow.Tx, 1)
	stop := consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, _ flow.Message) error {
		txs <- tx
		return nil
	})
	tx := receive(t, txs, "the message")
	stop()
	if err := tx.State("k").Set("late", nil); err == nil {
		t.Error("a transaction that is over can be written to")
	}
	tx.Emit(testMessage("in", "k", "late"))
	tx.WakeAt("k", time.Now())
	waitUntilIdle(t, tr, nil)
	if _, ok, _ := tr.State("g", "k").Get("late"); ok {
		t.Error("a write after the commit happened")
	}
}

func testStateViews(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	keys := []string{"", "a", "a\x00", "a\x00b", "ab", "b", "\xff\xff", "ü"}
	for _, k := range keys {
		m := testMessage("in", k, "id"+k)
		mustPublish(t, tr, m)
	}
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		st := tx.State(m.Key)
		return errors.Join(st.Set("1", []byte(m.Key)), st.Set("2", nil), st.Set("\xff", nil))
	})
	waitUntilIdle(t, tr, nil)
	var got []string
	for key, st := range tr.States("g", "") {
		got = append(got, key)
		if v := mustGet(t, st, "1"); v != key {
			t.Errorf("the state of %q holds %q", key, v)
		}
		if v, ok, err := st.Get("2"); len(v) != 0 || !ok || err != nil {
			t.Errorf("an empty value of %q is %q, %v, %v", key, v, ok, err)
		}
		if err := st.Set("1", nil); err == nil {
			t.Error("a view can be written to")
		}
		if err := st.Delete("1"); err == nil {
			t.Error("a view can be written to")
		}
	}
	slices.Sort(got)
	slices.Sort(keys)
	if !slices.Equal(got, keys) {
		t.Errorf("States yields %q, want %q", got, keys)
	}
	for key := range tr.States("other", "") {
		t.Errorf("another group has state for %q", key)
	}
	for range tr.States("g", "") {
		break
	}
}

// testOnCommitBeforeNext looks that the OnCommit functions of a message ran before the next
// message of its key is handled, whether the message emitted something or not.
func testOnCommitBeforeNext(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	var committed atomic.Int64
	const n = 12
	done := make(chan struct{})
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		at := committed.Load()
		if want := fmt.Sprint("k.", at); m.ID != want {
			t.Errorf("%s is handled when what %s did is not known yet", m.ID, want)
		}
		if at%3 != 2 {
			tx.Emit(testMessage("out", "k", m.ID))
		}
		if at%4 == 0 {
			tx.Sync()
		}
		tx.OnCommit(func() {
			if committed.Add(1) == n {
				close(done)
			}
		})
		return nil
	})
	mustPublish(t, tr, numberedMessages("in", "k", n)...)
	receive(t, done, "all commits")
}
