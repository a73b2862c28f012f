package kafka_test

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka"
)

// TestStuckTransaction has a producer whose transaction does not end: its lane is taken anew, and
// what was in the transaction is handled again, once. Nothing comes of it when it goes on.
func TestStuckTransaction(t *testing.T) {
	t.Run("while brokers answer", func(t *testing.T) { stuck(t, true) })
	t.Run("whatever they do", func(t *testing.T) { stuck(t, false) })
}

func stuck(t *testing.T, answering bool) {
	brokers, prefix := brokers(t), "stuck-"+rand.Text()+"."
	tr, err := kafka.New(kafka.Config{Brokers: brokers, Prefix: prefix, Lanes: testLanes, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(release) })
	t.Cleanup(func() {
		goOn()
		_ = tr.Close()
	})
	late := tr.HangOnce(release, answering)
	err = tr.Start(context.Background(), flow.Wiring{Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}}})
	if err != nil {
		t.Fatal(err)
	}
	count(t, tr, "g", "in")
	for i := range testLanes * 4 {
		key := string(rune('a' + i))
		if err := tr.Publish(context.Background(), flow.Message{ID: key, Topic: "in", Key: key, Type: "test.v1"}); err != nil {
			t.Fatal(err)
		}
	}
	handled := func() {
		t.Helper()
		got := results(t, brokers, prefix, testLanes*4)
		if len(got) != testLanes*4 {
			t.Errorf("%d keys were handled, want %d", len(got), testLanes*4)
		}
		for key, v := range got {
			if v != key+" " {
				t.Errorf("%s: handled %q, want once", key, v)
			}
		}
	}
	handled()
	goOn()
	if err := <-late; err == nil {
		t.Error("the transaction that hung was committed")
	}
	handled()
}
