package kafka

import (
	"context"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
	"github.com/vokter/vokter/test/kafkatest"
)

// TestTopicsOfOtherPrograms have partitions of their own, and get more while the transport runs.
func TestTopicsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, c Config) {
		admin := kafkatest.Admin(t, c.Brokers)
		const partitions = 7
		size, changes := "6291456", c.Prefix+flow.TopicChanges
		if err := admin.CreateTopic(changes, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: map[string]*string{"max.message.bytes": &size}}, false); err != nil {
			t.Fatal(err)
		}
		broken := make(chan error, 1)
		tr := openTransportWith(t, c, flow.Wiring{
			Topics: map[string]flow.Topic{flow.TopicChanges: {Outlet: true}, "in": {Groups: []string{"g"}}}, OnBroken: func(err error) { broken <- err },
		})
		if tr.lanes != c.Lanes {
			t.Errorf("%d lanes, want %d", tr.lanes, c.Lanes)
		}
		got := make(chan *sarama.ConsumerMessage, 100)
		consumer, err := sarama.NewConsumer(c.Brokers, kafkatest.Config())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = consumer.Close() })
		for p := range int32(partitions) {
			pc, err := consumer.ConsumePartition(changes, p, sarama.OffsetOldest)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pc.AsyncClose)
			go func() {
				for m := range pc.Messages() {
					got <- m
				}
			}()
		}
		// By a handler in a transaction, and without one.
		in := subscribe(t, tr, "g", "in")
		publishKeys(t, tr, 10)
		for range 10 {
			m := <-in
			tx, _ := flow.TxFrom(m.Context())
			tx.Emit(flow.Message{ID: "1", Topic: flow.TopicChanges, Key: m.Metadata[flow.HeaderKey], Type: flow.TypeEnded})
			m.Ack()
		}
		publish(t, tr, flow.TopicChanges, "k10", "1")
		for range 11 {
			m := <-got
			if want := client.PartitionOf(string(m.Key), partitions); int(m.Partition) != want {
				t.Errorf("key %s is in partition %d, want %d", m.Key, m.Partition, want)
			}
		}
		if err := admin.CreatePartitions(changes, partitions+2, nil, false); err != nil {
			t.Fatal(err)
		}
		tr.checkTopics()
		publish(t, tr, flow.TopicChanges, "k11", "1")
		<-got
		select {
		case err := <-broken:
			t.Errorf("it stopped: %v", err)
		default:
		}
		if _, err := tr.Subscriber("stranger").Subscribe(context.Background(), flow.TopicChanges); err == nil || !strings.Contains(err.Error(), "add the group") {
			t.Errorf("a group that was not declared: got %v", err)
		}
	})
}
