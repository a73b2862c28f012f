package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
)

func testOrderPerKey(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	const keys, each = 12, 60
	var seen journal
	busy := map[string]bool{}
	var mu sync.Mutex
	consume(t, tr, "g", "in", func(_ context.Context, _ flow.Tx, m flow.Message) error {
		mu.Lock()
		if busy[m.Key] {
			t.Errorf("two messages of key %s are handled at once", m.Key)
		}
		busy[m.Key] = true
		mu.Unlock()
		seen.add(m.Key, m.ID)
		mu.Lock()
		busy[m.Key] = false
		mu.Unlock()
		return nil
	})
	var wg sync.WaitGroup
	for k := range keys {
		wg.Go(func() {
			for _, m := range numbered("in", fmt.Sprint("k", k), each) {
				if err := tr.Publish(context.Background(), m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	settle(t, tr, nil)
	for k := range keys {
		key := fmt.Sprint("k", k)
		if got, want := seen.of(key), idsOf(numbered("in", key, each)); !slices.Equal(got, want) {
			t.Errorf("key %s came as %v, want %v", key, got, want)
		}
	}
}

func testParallelAcrossKeys(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	var mu sync.Mutex
	now, most := 0, 0
	second := make(chan struct{})
	both := sync.OnceFunc(func() { close(second) })
	consume(t, tr, "g", "in", func(context.Context, flow.Tx, flow.Message) error {
		mu.Lock()
		now++
		if most = max(most, now); now == 2 {
			both()
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			now--
			mu.Unlock()
		}()
		return hold(t, second)
	})
	for i := range 64 {
		publish(t, tr, text("in", fmt.Sprint(i), fmt.Sprint(i)))
	}
	settle(t, tr, nil)
	if most > f.Lanes {
		t.Errorf("%d messages were handled at once, more than %d lanes", most, f.Lanes)
	}
}

func testOrderSurvivesRejection(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{})
	ms := numbered("in", "k", 30)
	publish(t, tr, ms...)
	var want []string
	for i, m := range ms {
		want = append(want, m.ID)
		if i%3 == 0 {
			want = append(want, m.ID, m.ID)
		}
	}
	var seen journal
	times := map[string]int{}
	consume(t, tr, "g", "in", func(_ context.Context, _ flow.Tx, m flow.Message) error {
		seen.add("k", m.ID)
		times[m.ID]++
		if i := slices.Index(idsOf(ms), m.ID); i%3 == 0 && times[m.ID] < 3 {
			return errors.New("rejected")
		}
		return nil
	})
	settle(t, tr, nil)
	if got := seen.of("k"); !slices.Equal(got, want) {
		t.Errorf("came as %v, want %v", got, want)
	}
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
	want := text("in", "key with \x00 and ümlaut", "id")
	want.Subject, want.Header = "https://example.com/ä", map[string]string{"x": "y\x00z", "empty": ""}
	want.Body = make([]byte, 1<<20)
	for i := range want.Body {
		want.Body[i] = byte(i * i)
	}
	publish(t, tr, want)
	got := make(chan flow.Message, 2)
	positions := make(chan string, 2)
	times := 0
	consume(t, tr, "g", "in", func(_ context.Context, _ flow.Tx, m flow.Message) error {
		positions <- m.Position
		if times++; times == 1 {
			m.Header["x"] = "a handler owns its headers"
			return errors.New("again")
		}
		m.Position = ""
		got <- m
		return nil
	})
	if m := await(t, got, "the message"); !reflect.DeepEqual(m, want) {
		t.Errorf("came as %.200v, want %.200v", m, want)
	}
	first, second := await(t, positions, "a position"), await(t, positions, "a position")
	if first == "" || first != second {
		t.Errorf("one message had the positions %q and %q", first, second)
	}
}

func testHeldUntilSubscribed(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Bound: 8})
	ms := numbered("in", "k", 40)
	for _, m := range ms {
		publish(t, tr, m) // does not block, though nobody reads
	}
	seen := record(t, tr, "g", "in")
	settle(t, tr, nil)
	if got, want := seen.of("in"), idsOf(ms); !slices.Equal(got, want) {
		t.Errorf("came as %v, want %v", got, want)
	}
}

func testSeveralGroups(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Topics: map[string]flow.Topic{"in": {Groups: []string{"a", "b"}}}})
	ms := numbered("in", "k", 20)
	publish(t, tr, ms...)
	var seen journal
	for _, g := range []string{"a", "b"} {
		consume(t, tr, g, "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
			seen.add(g, m.ID)
			return tx.State("k").Set("last", []byte(g+m.ID))
		})
	}
	settle(t, tr, nil)
	for _, g := range []string{"a", "b"} {
		if got, want := seen.of(g), idsOf(ms); !slices.Equal(got, want) {
			t.Errorf("group %s got %v, want %v", g, got, want)
		}
		if got, want := get(t, tr.State(g, "k"), "last"), g+"k.19"; got != want {
			t.Errorf("group %s has state %q, want %q", g, got, want)
		}
	}
}
