package contract

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/kafka"
)

// TestRecordsInKafka: what stands in the topics is what the Router published.
func TestRecordsInKafka(t *testing.T) {
	t.Run("kfake", func(t *testing.T) {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		recordsInKafka(t, cluster.ListenAddrs())
	})
	t.Run("kafka", func(t *testing.T) {
		brokers := os.Getenv("VOKTER_KAFKA")
		if brokers == "" {
			t.Skip("VOKTER_KAFKA names no brokers")
		}
		recordsInKafka(t, strings.Split(brokers, ","))
	})
}

func recordsInKafka(t *testing.T, brokers []string) {
	prefix := "contract-" + strings.ToLower(rand.Text()) + "."
	defer deleteTopics(t, brokers, prefix)
	transport, err := kafka.New(kafka.Config{Brokers: brokers, Prefix: prefix, Lanes: 1, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldOn(t, transport)
	w.live()
	topics := make(map[string]map[string][]pipeline.Message) // by ID: what was brought back can be given up again
	for _, m := range w.messages() {
		if !public(m) {
			continue
		}
		if topics[m.Topic] == nil {
			topics[m.Topic] = make(map[string][]pipeline.Message)
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
			if s := all[m.Type]; s != nil {
				if err := s.Validate(instance(t, r.Value)); err != nil {
					t.Errorf("%s %s: %v", m.Type, m.ID, err)
				}
			}
			if err := headersOf(t, m.Type).Validate(headers(h)); err != nil {
				t.Errorf("%s %s: %v in %v", m.Type, m.ID, err, h)
			}
			readsAsCloudEvent(t, r, m)
			return len(want) > 0
		})
	}
}

// deleteTopics deletes what was made under prefix.
func deleteTopics(t *testing.T, brokers []string, prefix string) {
	t.Helper()
	admin, err := sarama.NewClusterAdmin(brokers, sarama.NewConfig())
	if err != nil {
		t.Error(err)
		return
	}
	defer admin.Close()
	topics, err := admin.ListTopics()
	if err != nil {
		t.Error(err)
	}
	for name := range topics {
		if strings.HasPrefix(name, prefix) {
			if err := admin.DeleteTopic(name); err != nil {
				t.Error(err)
			}
		}
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
