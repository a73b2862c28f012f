package pipelinetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// publishBlocks reports whether publishing m blocks until its context is done.
func publishBlocks(t *testing.T, tr flow.Transport, m flow.Message) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), shortDelay)
	defer cancel()
	err := tr.Publish(ctx, m)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Publish: %v, want it to wait until the deadline", err)
	}
	return err != nil
}

func testPublishBlocks(t *testing.T, _ Features, s Site) {
	const bound = 8
	tr := s.Open(t, Config{Bound: bound, Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}}})
	ms := numberedMessages("in", "k", bound+2)
	for _, m := range ms[:bound] {
		mustPublish(t, tr, m)
	}
	if !publishBlocks(t, tr, testMessage("in", "k", "refused")) {
		t.Fatalf("message %d did not block", bound+1)
	}
	published := make(chan error, 2)
	go func() {
		for _, m := range ms[bound:] {
			published <- tr.Publish(context.Background(), m)
		}
	}()
	release := make(chan struct{})
	var seen journal
	consume(t, tr, "g", "in", func(_ context.Context, _ flow.Tx, m flow.Message) error {
		seen.add("k", m.ID)
		return waitForRelease(t, release)
	})
	release <- struct{}{}
	if err := receive(t, published, "room for one"); err != nil {
		t.Error(err)
	}
	close(release)
	if err := receive(t, published, "room for another"); err != nil {
		t.Error(err)
	}
	waitUntilIdle(t, tr, nil)
	seen.want(t, "k", messageIDs(ms)...)
}

func testCloseUnblocksPublish(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Bound: 1, Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}}})
	mustPublish(t, tr, testMessage("in", "k", "1"))
	if !publishBlocks(t, tr, testMessage("in", "k", "2")) {
		t.Fatal("a full lane does not block")
	}
	published := make(chan error, 1)
	go func() { published <- tr.Publish(context.Background(), testMessage("in", "k", "3")) }()
	mustClose(t, tr)
	if err := receive(t, published, "the end of Publish"); err == nil {
		t.Error("Publish into a full lane returned nil at Close")
	}
	if err := tr.Publish(context.Background(), testMessage("in", "k", "4")); err == nil {
		t.Error("a closed transport publishes")
	}
}

// testCommitWaitsForRoom has a handler that emits into a full lane: it must wait, except
// where the topic closes a circle.
func testCommitWaitsForRoom(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Bound: 1, Topics: map[string]flow.Topic{
		"in": {Groups: []string{"g"}}, "out": {Groups: []string{"h"}}, "back": {Groups: []string{"h"}, Feedback: true},
	}})
	mustPublish(t, tr, testMessage("out", "k", "0"))
	mustPublish(t, tr, testMessage("back", "k", "0"))
	committed := make(chan string, 2)
	emit := func(topic string) handler {
		return func(_ context.Context, tx flow.Tx, m flow.Message) error {
			tx.Emit(testMessage(topic, "k", m.ID))
			tx.OnCommit(func() { committed <- topic })
			return nil
		}
	}
	mustPublish(t, tr, testMessage("in", "k", "1"))
	stop := consume(t, tr, "g", "in", emit("back"))
	if got := receive(t, committed, "a commit into a full topic that is feedback"); got != "back" {
		t.Fatalf("committed %s", got)
	}
	stop()
	mustPublish(t, tr, testMessage("in", "k", "2"))
	consume(t, tr, "g", "in", emit("out"))
	if !publishBlocks(t, tr, testMessage("in", "k", "3")) {
		t.Fatal("the handler's commit did not wait for room")
	}
	if len(committed) > 0 {
		t.Fatal("OnCommit ran without room for what was emitted")
	}
	consume(t, tr, "h", "out", func(context.Context, flow.Tx, flow.Message) error { return nil })
	if got := receive(t, committed, "a commit after there was room"); got != "out" {
		t.Fatalf("committed %s", got)
	}
}

func testIdle(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}}})
	if !tr.Idle() {
		t.Error("a new transport is not idle")
	}
	mustPublish(t, tr, testMessage("in", "k", "1"))
	if tr.Idle() {
		t.Error("idle though a message waits")
	}
	began, end := make(chan struct{}), make(chan struct{})
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		began <- struct{}{}
		if m.Type != flow.TypeWake {
			tx.WakeAt("k", time.Unix(1, 0))
		}
		return waitForRelease(t, end)
	})
	receive(t, began, "the message")
	if tr.Idle() {
		t.Error("idle though a message is handled")
	}
	end <- struct{}{}
	receive(t, began, "the wake")
	if tr.Idle() {
		t.Error("idle though a wake is handled")
	}
	close(end)
	waitUntilIdle(t, tr, nil)
}
