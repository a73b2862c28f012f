package local

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/flow"
)

func open(t *testing.T, c Config) *Transport {
	t.Helper()
	tr, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, tr) })
	return tr
}

// mustClose closes c, which must not fail.
func mustClose(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// publish publishes ms.
func publish(t *testing.T, tr *Transport, ms ...flow.Message) {
	t.Helper()
	if err := tr.Publish(t.Context(), ms...); err != nil {
		t.Fatalf("Publish: %v", err)
	}
}

func subscribe(t *testing.T, tr *Transport, group, topic string) <-chan *message.Message {
	t.Helper()
	ch, err := tr.Subscriber(group).Subscribe(context.Background(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func newMessage(topic, key, id string, size int) flow.Message {
	return flow.Message{ID: id, Topic: topic, Key: key, Type: "test.v1", Body: make([]byte, size)}
}

// newMemoryStore makes a store in memory whose logs can be looked at.
func newMemoryStore(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(store.Options{Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func storedEntries(t *testing.T, db *store.DB, topic string) []store.Entry {
	t.Helper()
	page, err := db.ReadLog(topic, 0, 0, 1<<62, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// TestReadBack lets a group fall far behind what is kept in memory.
func TestReadBack(t *testing.T) {
	db := newMemoryStore(t)
	tr := open(t, Config{Store: db, Topics: map[string]Topic{"in": {Groups: []string{"g"}}}})
	const n = 300
	for i := range n {
		publish(t, tr, newMessage("in", "k", fmt.Sprint(i), 10<<10))
	}
	l := tr.topic("in").lanes[0]
	if len(l.tail) == n || l.tailBytes > maxTailBytes {
		t.Errorf("%d messages, %d bytes are in memory", len(l.tail), l.tailBytes)
	}
	ch := subscribe(t, tr, "g", "in")
	for i := range n {
		m := <-ch
		if m.UUID != fmt.Sprint(i) || len(m.Payload) != 10<<10 {
			t.Fatalf("message %d came as %s with %d bytes", i, m.UUID, len(m.Payload))
		}
		m.Ack()
	}
}

// TestTrimmed consumes with two groups; what both have is trimmed in chunks, nothing
// else, and the next offset is never given twice.
func TestTrimmed(t *testing.T) {
	db := newMemoryStore(t)
	c := Config{Store: db, Bound: 10 * trimMessages, Topics: map[string]Topic{"in": {Groups: []string{"a", "b"}}}}
	tr := open(t, c)
	const n = 3*trimMessages + 10
	for i := range n {
		publish(t, tr, newMessage("in", "k", fmt.Sprint(i), 1))
	}
	drain := func(group string) {
		ch := subscribe(t, tr, group, "in")
		for range n {
			(<-ch).Ack()
		}
	}
	drain("a")
	if got := len(storedEntries(t, db, "in")); got != n {
		t.Errorf("%d of %d messages are left while a group has consumed none", got, n)
	}
	drain("b")
	mustClose(t, tr)
	if got := len(storedEntries(t, db, "in")); got > trimMessages+10 {
		t.Errorf("%d of %d messages are left after all groups consumed them", got, n)
	}
	tr = open(t, c)
	if got := len(storedEntries(t, db, "in")); got != 0 {
		t.Errorf("%d messages are left after reopening", got)
	}
	publish(t, tr, newMessage("in", "k", "next", 1))
	if got := storedEntries(t, db, "in"); len(got) != 1 || got[0].Offset != n {
		t.Errorf("the next message is %v, want offset %d", got, n)
	}
}

// TestRetention publishes into a topic without groups, beyond its size and its age, also
// across a reopening.
func TestRetention(t *testing.T) {
	db := newMemoryStore(t)
	var mu sync.Mutex
	now := time.Unix(1e9, 0)
	c := Config{Store: db, MaxBytes: 1 << 20, MaxAge: time.Hour, Bound: 1, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}}
	tr := open(t, c)
	fill := func(n int) {
		for range n {
			publish(t, tr, newMessage("dead", "k", "id", 10<<10))
		}
	}
	size := func() (bytes int) {
		for _, e := range storedEntries(t, db, "dead") {
			bytes += e.Record.Size()
		}
		return bytes
	}
	fill(300)
	if got := size(); got > 1<<20 || got < 1<<18 {
		t.Errorf("%d bytes are kept, want up to 1 MiB", got)
	}
	mustClose(t, tr)
	tr = open(t, c)
	if got := tr.topic("dead").keptBytes.Load(); got != int64(size()) {
		t.Errorf("reopened with %d bytes on the books, %d in the store", got, size())
	}
	fill(100)
	if got := size(); got > 1<<20 || got < 1<<18 {
		t.Errorf("%d bytes are kept, want up to 1 MiB", got)
	}
	mu.Lock()
	now = now.Add(2 * time.Hour)
	mu.Unlock()
	fill(1)
	if got := len(storedEntries(t, db, "dead")); got > 64 {
		t.Errorf("%d messages are kept beyond their age", got)
	}
	ch := subscribe(t, tr, "late", "dead")
	(<-ch).Ack()
	if got := tr.topic("dead").keptBytes.Load(); got != 0 {
		t.Errorf("%d bytes are on the books of a topic with a group", got)
	}
}

// TestSharedLanes has subscriptions of one group come and go while messages flow: each
// message is handled once and in order.
func TestSharedLanes(t *testing.T) {
	tr := open(t, Config{Lanes: 4, MaxPause: time.Millisecond})
	var mu sync.Mutex
	got := map[string][]int{}
	const keys, each = 8, 200
	var left sync.WaitGroup
	left.Add(keys * each)
	reader := func(ctx context.Context) {
		ch, err := tr.Subscriber("g").Subscribe(ctx, "in")
		if err != nil {
			t.Error(err)
			return
		}
		go func() {
			for m := range ch {
				var n int
				fmt.Sscan(m.UUID, &n)
				key := m.Metadata[flow.HeaderKey]
				tx := transactionOf(m)
				tx.OnCommit(func() {
					mu.Lock()
					got[key] = append(got[key], n)
					mu.Unlock()
					left.Done()
				})
				m.Ack()
			}
		}()
	}
	reader(context.Background())
	for i := range each {
		for k := range keys {
			publish(t, tr, newMessage("in", fmt.Sprint(k), fmt.Sprint(i), 0))
		}
		if i%20 == 0 {
			ctx, cancel := context.WithCancel(context.Background())
			reader(ctx)
			if i%40 == 0 {
				defer cancel()
			} else {
				cancel()
			}
		}
	}
	left.Wait()
	for k, ns := range got {
		if len(ns) != each || !slices.IsSorted(ns) {
			t.Errorf("key %s was handled as %v", k, ns)
		}
	}
}

// TestCloseIsBounded closes a transport with a handler that never ends.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, Config{Grace: time.Minute})
		ch := subscribe(t, tr, "g", "in")
		publish(t, tr, newMessage("in", "k", "1", 0))
		m := <-ch
		tx := transactionOf(m)
		if err := tx.State("k").Set("a", nil); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		cancelled := make(chan time.Duration, 1)
		go func() {
			<-m.Context().Done()
			cancelled <- time.Since(start)
		}()
		mustClose(t, tr)
		if told, took := <-cancelled, time.Since(start); told != time.Minute || took != time.Minute+abandonAfter {
			t.Errorf("the handler was cancelled after %v and abandoned after %v", told, took)
		}
		if err := tx.State("k").Set("a", nil); err == nil {
			t.Error("an abandoned handler can still write")
		}
		for range tx.State("k").Scan("") {
			break
		}
		if _, open := <-ch; open {
			t.Error("the channel is open after Close")
		}
	})
}

// TestRejectionPauses counts how often a message that is always rejected comes.
func TestRejectionPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, Config{})
		ch := subscribe(t, tr, "g", "in")
		publish(t, tr, newMessage("in", "k", "1", 0))
		start := time.Now()
		var at []time.Duration
		for range 12 {
			m := <-ch
			at = append(at, time.Since(start).Round(time.Millisecond))
			m.Nack()
		}
		ms := time.Millisecond
		want := []time.Duration{0, 5 * ms, 15 * ms, 35 * ms, 75 * ms, 155 * ms, 315 * ms, 635 * ms, 1275 * ms, 2275 * ms, 3275 * ms, 4275 * ms}
		if !slices.Equal(at, want) {
			t.Errorf("came after %v, want %v", at, want)
		}
	})
}

func TestConfigErrors(t *testing.T) {
	for name, c := range map[string]Config{
		"dir and store": {Dir: t.TempDir(), Store: newMemoryStore(t)},
		"negative":      {Bound: -1},
		"no name":       {Topics: map[string]Topic{"in": {Groups: []string{""}}}},
		"lanes":         {Lanes: 1 << 20},
	} {
		if tr, err := Open(c); err == nil {
			t.Errorf("%s: no error", name)
			tr.Close()
		}
	}
}
