package kafka_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka"
)

// TestStateLost deletes the topic of the state while nothing runs, and leaves the others.
func TestStateLost(t *testing.T) {
	brokers, prefix := brokers(t), "lost-"+rand.Text()+"."
	topics := map[string]flow.Topic{"in": {Groups: []string{"g"}}, flow.TopicChanges: {}}
	tr := open(t, brokers, prefix, "", topics)
	if err := tr.Publish(context.Background(), flow.Message{ID: "1", Topic: flow.TopicChanges, Key: "k", Type: "test.v1"}); err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	c := sarama.NewConfig()
	c.Version = sarama.V2_8_0_0
	admin, err := sarama.NewClusterAdmin(brokers, c)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := admin.DeleteTopic(prefix + "state"); err != nil {
		t.Fatal(err)
	}
	_, err = kafka.Open(context.Background(), kafka.Config{Brokers: brokers, Prefix: prefix, Lanes: testLanes, Replication: 1, Topics: topics})
	if err == nil || !strings.Contains(err.Error(), prefix+"state is missing or empty") {
		t.Errorf("Open: %v, want a refusal that names the topic", err)
	}
}

// TestLargeRecord emits a message that is larger than the brokers take, but packs well.
func TestLargeRecord(t *testing.T) {
	run := func(t *testing.T, brokers []string) {
		prefix := "big-" + rand.Text() + "."
		tr := open(t, brokers, prefix, "", map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}})
		body := []byte(strings.Repeat("in stock, out of stock, ", 15<<20/24))
		ms, err := tr.Subscriber("g").Subscribe(context.Background(), "in")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for m := range ms {
				tx, _ := flow.TxFrom(m.Context())
				tx.Emit(flow.Message{ID: m.UUID, Topic: "out", Key: "k", Type: "test.v1", Body: body})
				if err := tx.Fits(); err != nil {
					t.Error(err)
				}
				m.Ack()
			}
		}()
		if err := tr.Publish(context.Background(), flow.Message{ID: "x", Topic: "in", Key: "k", Type: "test.v1"}); err != nil {
			t.Fatal(err)
		}
		if got := results(t, brokers, prefix, 1); got["k"] != string(body) {
			t.Errorf("got %d bytes, want %d", len(got["k"]), len(body))
		}
	}
	t.Run("kfake", func(t *testing.T) { run(t, brokers(t)) })
	t.Run("real", func(t *testing.T) { run(t, realBrokers(t)) })
}
