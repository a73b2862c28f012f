package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// testPost posts before and after the group subscribes, rejects once, and looks that
// positions stay.
func testPost(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	p := tr.Poster("g", "in")
	post := func(id string) {
		if err := p.Post(context.Background(), testMessage("", "k", id)); err != nil {
			t.Fatal(err)
		}
	}
	post("p1")
	if tr.Idle() {
		t.Error("idle though a posted message waits")
	}
	var seen journal
	h := func(_ context.Context, tx flow.Tx, m flow.Message) error {
		seen.add("k", m.ID)
		if m.ID == "p2" && len(seen.ids("k")) < 5 {
			return errors.New("rejected")
		}
		if posted := m.ID[0] == 'p'; posted != (m.Position == "") || m.Topic != "in" || m.Key != "k" {
			t.Errorf("came as %+v", m)
		}
		return tx.State("k").Set(m.ID, nil)
	}
	consume(t, tr, "g", "in", h)
	waitUntilIdle(t, tr, nil)
	mustPublish(t, tr, testMessage("in", "k", "m1"))
	waitUntilIdle(t, tr, nil)
	post("p2")
	waitUntilIdle(t, tr, nil)
	mustPublish(t, tr, testMessage("in", "k", "m2"))
	waitUntilIdle(t, tr, nil)
	seen.want(t, "k", "p1", "m1", "p2", "p2", "p2", "m2")
	mustClose(t, tr)
	if err := p.Post(context.Background(), testMessage("in", "k", "p3")); err == nil {
		t.Error("a closed transport takes posted messages")
	}
	tr = s.Open(t, Config{})
	seen = journal{}
	consume(t, tr, "g", "in", h)
	waitUntilIdle(t, tr, nil)
	seen.want(t, "k")
	for _, name := range []string{"p1", "p2", "m1", "m2"} {
		if _, ok, err := tr.State("g", "k").Get(name); !ok || err != nil {
			t.Errorf("what the handler of %s wrote is gone (%v)", name, err)
		}
	}
}

// testHandlersMayFinish closes a transport while a handler is at work.
func testHandlersMayFinish(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	mustPublish(t, tr, numberedMessages("in", "k", 2)...)
	began, end := make(chan struct{}), make(chan struct{})
	consume(t, tr, "g", "in", func(ctx context.Context, tx flow.Tx, m flow.Message) error {
		if m.ID != "k.0" {
			t.Errorf("%s was handed out by a transport that closes", m.ID)
			return nil
		}
		close(began)
		if err := waitForRelease(t, end); err != nil {
			return err
		}
		if ctx.Err() != nil {
			t.Error("the handler's context was cancelled as soon as Close began")
		}
		return tx.State("k").Set("done", []byte(m.ID))
	})
	receive(t, began, "the message")
	closed := make(chan error, 1)
	go func() { closed <- tr.Close() }()
	for tr.Publish(context.Background(), testMessage("other", "k", "x")) == nil {
	} // until Close began
	close(end)
	if err := receive(t, closed, "the end of Close"); err != nil {
		t.Errorf("Close: %v", err)
	}
	tr = s.Open(t, Config{})
	if got := mustGet(t, tr.State("g", "k"), "done"); got != "k.0" {
		t.Errorf("what was finished during Close left %q", got)
	}
	seen := recordTopic(t, tr, "g", "in")
	waitUntilIdle(t, tr, nil)
	seen.want(t, "in", "k.1")
}

// testSurvivesReopen closes and opens a transport again and again in the middle of work.
func testSurvivesReopen(t *testing.T, _ Features, s Site) {
	l := newCountingPipeline()
	for round := range 4 {
		tr := s.Open(t, countingConfig)
		enough := l.start(t, tr, 25)
		for i := range 15 {
			l.publish(tr, fmt.Sprintf("r%d.%d", round, i))
		}
		receive(t, enough, "25 steps")
		mustClose(t, tr)
	}
	l.verify(t, s)
}

// testDroppedGroup leaves a group out of the declaration and declares another.
func testDroppedGroup(t *testing.T, _ Features, s Site) {
	handled := func(g string, seen *journal) handler {
		return func(_ context.Context, tx flow.Tx, m flow.Message) error {
			seen.add(g, m.ID)
			return tx.State("k").Set("last", []byte(m.ID))
		}
	}
	var seen journal
	tr := s.Open(t, Config{Topics: map[string]flow.Topic{"in": {Groups: []string{"a", "b"}}}})
	consume(t, tr, "a", "in", handled("a", &seen))
	consume(t, tr, "b", "in", handled("b", &seen))
	mustPublish(t, tr, numberedMessages("in", "k", 3)...)
	waitUntilIdle(t, tr, nil)
	mustClose(t, tr)
	tr = s.Open(t, Config{Bound: 2, Topics: map[string]flow.Topic{"in": {Groups: []string{"a", "c"}}}})
	for key := range tr.States("b", "") {
		t.Errorf("the dropped group keeps state for %q", key)
	}
	if got := mustGet(t, tr.State("a", "k"), "last"); got != "k.2" {
		t.Errorf("the group that stayed has state %q", got)
	}
	consume(t, tr, "a", "in", handled("a", &seen))
	consume(t, tr, "c", "in", handled("c", &seen))
	for _, id := range []string{"x", "y", "z", "u", "v"} {
		mustPublish(t, tr, testMessage("in", "k", id)) // the dropped group holds nothing up
	}
	waitUntilIdle(t, tr, nil)
	seen.want(t, "a", "k.0", "k.1", "k.2", "x", "y", "z", "u", "v")
	if got := seen.ids("c"); len(got) < 5 || !slices.Equal(got[len(got)-5:], []string{"x", "y", "z", "u", "v"}) {
		t.Errorf("the new group got %v, want what came since at least", got)
	}
}
