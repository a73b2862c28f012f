package pipelinetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// testAcknowledgedUnhandled acknowledges messages without handling them: what their transaction collected is dropped,
// and that of Unhandled stands in its place.
func testAcknowledgedUnhandled(t *testing.T, _ Features, s Site) {
	var unhandled atomic.Int32
	tr := s.Open(t, Config{Unhandled: func(tx flow.Tx, u flow.Unhandled) error {
		m, err := tx.Message()
		if err != nil || u != (flow.Unhandled{Group: "g", Topic: "in", Published: m.Type != flow.TypeWake}) {
			t.Errorf("unhandled: %+v of %+v, %v", m, u, err)
		}
		if unhandled.Add(1) == 1 {
			return errors.New("not yet") // so the message comes again
		}
		return tx.State(m.Key).Set("unhandled", []byte(m.ID))
	}})
	handles := map[string]bool{"handled": true, "twice": true}
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type == flow.TypeWake {
			return nil
		}
		handle := func() error {
			_, seen, err := tx.State(m.Key).Get("name")
			if seen {
				t.Errorf("%s: the handler sees what an earlier call wrote", m.Key)
			}
			tx.WakeAt(m.Key, time.Unix(1, 0))
			return errors.Join(err, tx.State(m.Key).Set("name", []byte(m.ID)))
		}
		if m.Key == "twice" {
			if err := tx.Handle(handle); err != nil {
				return err
			}
		}
		if handles[m.Key] {
			return tx.Handle(handle)
		}
		return handle()
	})
	mustPublish(t, tr, testMessage("in", "kept", "1"), testMessage("in", "handled", "2"), testMessage("in", "twice", "3"))
	waitUntilIdle(t, tr, func() bool { return unhandled.Load() >= 4 }) // one message, again, and two wakes
	for key, names := range map[string]map[string]bool{"kept": {"unhandled": true}, "handled": {"name": true, "unhandled": true}, "twice": {"name": true, "unhandled": true}} {
		for _, name := range []string{"name", "unhandled"} {
			if _, ok, err := tr.State("g", key).Get(name); ok != names[name] || err != nil {
				t.Errorf("%s has %q: %t, %v; want %t", key, name, ok, err, names[name])
			}
		}
	}
}

// testAcknowledgedAfterFailure acknowledges a message whose handler failed: it comes again.
func testAcknowledgedAfterFailure(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Unhandled: func(flow.Tx, flow.Unhandled) error {
		t.Error("a message that was handled counts as unhandled")
		return nil
	}})
	var calls atomic.Int32
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		_ = tx.Handle(func() error {
			if calls.Add(1) < 3 {
				return errors.New("failed")
			}
			return nil
		})
		return nil
	})
	mustPublish(t, tr, testMessage("in", "k", "1"))
	waitUntilIdle(t, tr, func() bool { return calls.Load() == 3 })
}

// testAcknowledgedTooEarly acknowledges messages before their handlers have ended, and before they begin. The commit
// waits for those that have begun; the others never run.
func testAcknowledgedTooEarly(t *testing.T, _ Features, s Site) {
	unhandled := make(chan string, 1)
	tr := s.Open(t, Config{Unhandled: func(tx flow.Tx, _ flow.Unhandled) error {
		m, err := tx.Message()
		unhandled <- m.ID
		return err
	}})
	messages, err := tr.Subscriber("g").Subscribe(t.Context(), "in")
	if err != nil {
		t.Fatal(err)
	}
	mustPublish(t, tr, testMessage("in", "k", "1"), testMessage("in", "k", "2"))
	running := receive(t, messages, "the first message")
	tx, _ := flow.TxFrom(running.Context())
	if err := tx.Handle(func() error {
		running.Ack()
		return tx.State("k").Set("name", []byte("1"))
	}); err != nil {
		t.Errorf("the handler of an acknowledged message: %v", err)
	}
	late := receive(t, messages, "the second message")
	late.Ack()
	if id := receive(t, unhandled, "an unhandled message"); id != "2" {
		t.Errorf("message %s is unhandled, want 2", id)
	}
	tx, _ = flow.TxFrom(late.Context())
	if err := tx.Handle(func() error { return nil }); err == nil {
		t.Error("the handler ran after its message was given up")
	}
	waitUntilIdle(t, tr, nil)
	if value, _, err := tr.State("g", "k").Get("name"); string(value) != "1" || err != nil {
		t.Errorf("the state is %q, %v; want what the handler wrote after the acknowledgement", value, err)
	}
}
