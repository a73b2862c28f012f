package kafka_test

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/kafka"
)

// TestStuckTransaction has a producer whose transaction never ends: its lane is taken anew, and
// what was in the transaction is handled again, once.
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
	t.Cleanup(func() {
		close(release)
		_ = tr.Close()
	})
	tr.HangOnce(release, answering)
	err = tr.Start(context.Background(), pipeline.Wiring{Topics: map[string]pipeline.Topic{"in": {Groups: []string{"g"}}, "out": {}}})
	if err != nil {
		t.Fatal(err)
	}
	count(t, tr, "g", "in")
	for i := range testLanes * 4 {
		key := string(rune('a' + i))
		if err := tr.Publish(context.Background(), pipeline.Message{ID: key, Topic: "in", Key: key, Type: "test.v1"}); err != nil {
			t.Fatal(err)
		}
	}
	for key, v := range results(t, brokers, prefix, testLanes*4) {
		if v != key+" " {
			t.Errorf("%s: handled %q, want once", key, v)
		}
	}
}
