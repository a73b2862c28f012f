package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
)

func testOrderPerKey(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	const keys, each = 12, 60
	var seen journal
	var handled sync.Map // keys
	consume(t, tr, "g", "in", func(_ context.Context, _ flow.Tx, m flow.Message) error {
		if _, twice := handled.LoadOrStore(m.Key, true); twice {
			t.Errorf("two messages of key %s are handled at once", m.Key)
		}
		seen.add(m.Key, m.ID)
		handled.Delete(m.Key)
		return nil
	})
	var wg sync.WaitGroup
	for k := range keys {
		wg.Go(func() {
			for _, m := range numberedMessages("in", fmt.Sprint("k", k), each) {
				if err := tr.Publish(context.Background(), m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	waitUntilIdle(t, tr, nil)
	for k := range keys {
		key := fmt.Sprint("k", k)
		seen.want(t, key, messageIDs(numberedMessages("in", key, each))...)
	}
}

func testParallelAcrossKeys(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	var handled atomic.Int64
	second := make(chan struct{})
	both := sync.OnceFunc(func() { close(second) })
	consume(t, tr, "g", "in", func(context.Context, flow.Tx, flow.Message) error {
		now := int(handled.Add(1))
		defer handled.Add(-1)
		if now == 2 {
			both()
		}
		if now > f.Lanes {
			t.Errorf("%d messages are handled at once, more than %d lanes", now, f.Lanes)
		}
		return waitForRelease(t, second)
	})
	for i := range 64 {
		mustPublish(t, tr, testMessage("in", fmt.Sprint(i), fmt.Sprint(i)))
	}
	waitUntilIdle(t, tr, nil)
}

func testOrderSurvivesRejection(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	ms := numberedMessages("in", "k", 30)
	mustPublish(t, tr, ms...)
	var want []string
	rejections := map[string]int{} // that are left
	for i, m := range ms {
		want = append(want, m.ID)
		if i%3 == 0 {
			want = append(want, m.ID, m.ID)
			rejections[m.ID] = 2
		}
	}
	var seen journal
	consume(t, tr, "g", "in", func(_ context.Context, _ flow.Tx, m flow.Message) error {
		seen.add("k", m.ID)
		if rejections[m.ID] > 0 {
			rejections[m.ID]--
			return errors.New("rejected")
		}
		return nil
	})
	waitUntilIdle(t, tr, nil)
	seen.want(t, "k", want...)
}

func testPublisherCloseIsPrivate(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	a, b := tr.Publisher(), tr.Publisher()
	mustClose(t, a)
	if err := a.Publish("in", message.NewMessage("a", nil)); err == nil {
		t.Error("a closed publisher publishes")
	}
	if err := b.Publish("in", message.NewMessage("b", nil)); err != nil {
		t.Errorf("closing one publisher closed another: %v", err)
	}
}

func testRoundTrip(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	want := testMessage("in", "key with \x00 and ümlaut", "id")
	want.Subject, want.Header = "https://example.com/ä", map[string]string{"x": "y\x00z", "empty": ""}
	want.Body = make([]byte, 1<<20)
	for i := range want.Body {
		want.Body[i] = byte(i * i)
	}
	mustPublish(t, tr, want)
	got := make(chan flow.Message, 2)
	times := 0
	consume(t, tr, "g", "in", func(_ context.Context, _ flow.Tx, m flow.Message) error {
		if times++; times == 1 {
			want.Position, m.Header["x"] = m.Position, "a handler owns its headers"
			return errors.New("again")
		}
		got <- m
		return nil
	})
	if m := receive(t, got, "the message"); m.Position == "" || !reflect.DeepEqual(m, want) {
		t.Errorf("came as %.200v at %q, want %.200v at %q as before", m, m.Position, want, want.Position)
	}
}

func testHeldUntilSubscribed(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Bound: 8})
	ms := numberedMessages("in", "k", 40)
	for _, m := range ms {
		mustPublish(t, tr, m) // does not block, though nobody reads
	}
	seen := recordTopic(t, tr, "g", "in")
	waitUntilIdle(t, tr, nil)
	seen.want(t, "in", messageIDs(ms)...)
}

func testSeveralGroups(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Topics: map[string]flow.Topic{"in": {Groups: []string{"a", "b"}}}})
	ms := numberedMessages("in", "k", 20)
	mustPublish(t, tr, ms...)
	var seen journal
	for _, g := range []string{"a", "b"} {
		consume(t, tr, g, "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
			seen.add(g, m.ID)
			return tx.State("k").Set("last", []byte(g+m.ID))
		})
	}
	waitUntilIdle(t, tr, nil)
	for _, g := range []string{"a", "b"} {
		seen.want(t, g, messageIDs(ms)...)
		if got, want := mustGet(t, tr.State(g, "k"), "last"), g+"k.19"; got != want {
			t.Errorf("group %s has state %q, want %q", g, got, want)
		}
	}
}
