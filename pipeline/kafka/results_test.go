package kafka

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/kafkatest"
)

// countMessages makes group count the messages of each key of topic, as state, and emit what it
// counted to the topic "out".
func countMessages(t *testing.T, tr *Transport, group, topic string) {
	t.Helper()
	ms := subscribe(t, tr, group, topic)
	go func() {
		for m := range ms {
			go func() {
				tx, _ := flow.TxFrom(m.Context())
				key := m.Metadata[flow.HeaderKey]
				v, _, err := tx.State(key).Get("n")
				if err != nil {
					m.Nack()
					return
				}
				v = append(v, m.UUID+" "...)
				if err := tx.State(key).Set("n", v); err != nil {
					m.Nack()
					return
				}
				tx.Emit(flow.Message{ID: group + " " + m.UUID, Topic: "out", Key: key, Type: "test.v1", Body: v})
				m.Ack()
			}()
		}
	}()
}

// readResults reads what is committed to the topic "out" of prefix, which are n messages, and
// returns the last one of each key.
func readResults(t *testing.T, brokers []string, prefix string, n int) map[string]string {
	t.Helper()
	got := make(chan *sarama.ConsumerMessage)
	consumeRecords(t, brokers, prefix+"out", func(m *sarama.ConsumerMessage) {
		select {
		case got <- m:
		case <-t.Context().Done():
		}
	})
	last, seen := map[string]string{}, map[string]bool{}
	end, lanes := "", testLanes // what stands behind the last message of each lane
	for lanes > 0 {
		if len(seen) == n && end == "" {
			end = writeSentinels(t, brokers, prefix+"out")
		}
		select {
		case m := <-got:
			if m.Key == nil {
				if string(m.Value) == end {
					lanes--
				}
				continue
			}
			id, _, _ := decodeRecord(m)
			if seen[id] {
				t.Errorf("%q of key %s came twice", id, m.Key)
			}
			seen[id] = true
			last[string(m.Key)] = string(m.Value)
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d outputs came", len(seen), n)
		}
	}
	if len(seen) != n {
		t.Errorf("%d outputs came, want %d", len(seen), n)
	}
	return last
}

// newLaneProducer returns a producer whose messages name their partitions. It packs them.
func newLaneProducer(t *testing.T, brokers []string) sarama.SyncProducer {
	t.Helper()
	c := kafkatest.Config()
	c.Producer.Partitioner, c.Producer.Compression, c.Producer.MaxMessageBytes = sarama.NewManualPartitioner, sarama.CompressionGZIP, 20<<20
	return newProducer(t, brokers, c)
}

// newProducer returns a producer that is closed behind the test.
func newProducer(t testing.TB, brokers []string, c *sarama.Config) sarama.SyncProducer {
	t.Helper()
	p, err := sarama.NewSyncProducer(brokers, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// consumeRecords calls f with the committed records of topic, from the oldest on, until the end of the test. Each
// lane has a goroutine of its own.
func consumeRecords(t testing.TB, brokers []string, topic string, f func(*sarama.ConsumerMessage)) {
	t.Helper()
	consumer, err := sarama.NewConsumer(brokers, kafkatest.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = consumer.Close() })
	for lane := range int32(testLanes) {
		pc, err := consumer.ConsumePartition(topic, lane, sarama.OffsetOldest)
		for tries := 0; err != nil && tries < 200; tries++ { // a topic that was just made has no leaders for a moment
			time.Sleep(50 * time.Millisecond)
			pc, err = consumer.ConsumePartition(topic, lane, sarama.OffsetOldest)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pc.AsyncClose)
		go func() {
			for m := range pc.Messages() {
				f(m)
			}
		}()
	}
}

// writeSentinels writes a message without a key behind what stands in each lane of topic, and
// returns its value.
func writeSentinels(t *testing.T, brokers []string, topic string) string {
	t.Helper()
	p := newLaneProducer(t, brokers)
	value := rand.Text()
	for lane := range int32(testLanes) {
		if _, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Partition: lane, Value: sarama.StringEncoder(value)}); err != nil {
			t.Fatal(err)
		}
	}
	return value
}
