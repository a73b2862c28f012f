package contract

import (
	"bytes"
	"context"
	"testing"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/test/kafkatest"
)

// newWorldOnKafka returns a world whose topics have so many partitions.
func newWorldOnKafka(t *testing.T, brokers []string, prefix string, partitions int, topics []string) *world {
	t.Helper()
	transport, err := kafka.New(kafka.Config{Brokers: brokers, Prefix: prefix, Lanes: partitions, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	return newWorldOn(t, transport, topics)
}

// TestRecordsInKafka: what stands in the topics is what the Router published.
func TestRecordsInKafka(t *testing.T) { kafkatest.OnBoth(t, recordsInKafka) }

func recordsInKafka(t *testing.T, brokers []string, prefix string) {
	w := newWorldOnKafka(t, brokers, prefix, 1, watched)
	w.live()
	topics := make(map[string]map[string][]flow.Message) // by ID: what was brought back can be given up again
	for _, m := range w.messages() {
		if !public(m) {
			continue
		}
		if topics[m.Topic] == nil {
			topics[m.Topic] = make(map[string][]flow.Message)
		}
		topics[m.Topic][m.ID] = append(topics[m.Topic][m.ID], m)
	}
	all := schemas(t)
	for topic, want := range topics {
		read(t, brokers, prefix+topic, func(r *sarama.ConsumerMessage) (more bool) {
			h := make(map[string]string)
			for _, x := range r.Headers {
				h[string(x.Key)] = string(x.Value)
			}
			same := want[h["ce_id"]]
			if len(same) == 0 {
				if bodies[h["ce_type"]] != nil {
					t.Errorf("%s: %s %s is there once more than it was handled", topic, h["ce_type"], h["ce_id"])
				}
				return true
			}
			m := same[0]
			if want[m.ID] = same[1:]; len(same) == 1 {
				delete(want, m.ID)
			}
			if string(r.Key) != m.Key || !bytes.Equal(r.Value, m.Body) {
				t.Errorf("%s %s: key %q, body %q, want %q and %q", m.Type, m.ID, r.Key, r.Value, m.Key, m.Body)
			}
			if s := all[m.Type]; s != nil && !tombstone(m) {
				if err := s.Validate(instance(t, r.Value)); err != nil {
					t.Errorf("%s %s: %v", m.Type, m.ID, err)
				}
			}
			if err := headersOf(t, m.Type).Validate(headers(h)); err != nil {
				t.Errorf("%s %s: %v in %v", m.Type, m.ID, err, h)
			}
			if want := schemaID + m.Type + ".json"; bodies[m.Type] != nil && !commands[m.Type] && h["ce_dataschema"] != want {
				t.Errorf("%s %s: the schema is %q, want %q", m.Type, m.ID, h["ce_dataschema"], want)
			}
			readsAsCloudEvent(t, r, m)
			return len(want) > 0
		})
	}
}

// read calls f with the committed records of a topic, from the first on, while it wants more.
func read(t *testing.T, brokers []string, topic string, f func(*sarama.ConsumerMessage) (more bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cfg := sarama.NewConfig()
	cfg.Consumer.IsolationLevel = sarama.ReadCommitted
	consumer, err := sarama.NewConsumer(brokers, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	partitions, err := consumer.Partitions(topic)
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan *sarama.ConsumerMessage)
	for _, p := range partitions {
		c, err := consumer.ConsumePartition(topic, p, sarama.OffsetOldest)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() {
			for r := range c.Messages() {
				select {
				case all <- r:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	for {
		select {
		case r := <-all:
			if !f(r) {
				return
			}
		case <-ctx.Done():
			t.Fatalf("%s: not all of it came", topic)
		}
	}
}
