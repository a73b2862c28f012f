//go:build unix

package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// topics are those of the processes, as any other program sees them: it reads what is
// committed, and publishes commands.
type topics struct {
	prefix     string
	client     sarama.Client
	consumer   sarama.Consumer
	producer   sarama.SyncProducer
	partitions []sarama.PartitionConsumer
}

// newTopics connects to the brokers at addrs, and waits for them while they are away.
func newTopics(addrs, prefix string) (*topics, error) {
	c := sarama.NewConfig()
	c.Version = sarama.V2_8_0_0
	c.Metadata.AllowAutoTopicCreation = false
	c.Metadata.Retry.Max, c.Metadata.Retry.Backoff = 240, 250*time.Millisecond
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	c.Consumer.Retry.Backoff = 250 * time.Millisecond
	c.Producer.Idempotent, c.Producer.RequiredAcks, c.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
	c.Producer.Retry.Max, c.Producer.Retry.Backoff = 240, 250*time.Millisecond
	c.Producer.Return.Successes = true
	// Any partition will do: what stands in another than its key's is carried there.
	c.Producer.Partitioner = func(topic string) sarama.Partitioner {
		if topic == prefix+"documents" {
			return sarama.NewRandomPartitioner(topic)
		}
		return sarama.NewManualPartitioner(topic)
	}
	t := &topics{prefix: prefix}
	var err error
	if t.client, err = sarama.NewClient(strings.Split(addrs, ","), c); err != nil {
		return nil, err
	}
	if t.consumer, err = sarama.NewConsumerFromClient(t.client); err != nil {
		return nil, errors.Join(err, t.close())
	}
	if t.producer, err = sarama.NewSyncProducerFromClient(t.client); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *topics) close() error {
	for _, p := range t.partitions {
		p.AsyncClose()
	}
	var errs []error
	if t.producer != nil {
		errs = append(errs, t.producer.Close())
	}
	if t.consumer != nil {
		errs = append(errs, t.consumer.Close())
	}
	return errors.Join(append(errs, t.client.Close())...)
}

// consume calls take with every record of topic, one at a time, until t is closed.
func (t *topics) consume(topic string, take func(*sarama.ConsumerMessage)) error {
	parts, err := t.client.Partitions(t.prefix + topic)
	if err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	for _, p := range parts {
		pc, err := t.consumer.ConsumePartition(t.prefix+topic, p, sarama.OffsetOldest)
		if err != nil {
			return fmt.Errorf("topic %s: %w", topic, err)
		}
		t.partitions = append(t.partitions, pc)
		go func() {
			for m := range pc.Messages() {
				take(m)
			}
		}()
	}
	return nil
}

// header returns a header of m.
func header(m *sarama.ConsumerMessage, name string) string {
	for _, h := range m.Headers {
		if string(h.Key) == name {
			return string(h.Value)
		}
	}
	return ""
}

// publishCommand publishes a command about the page of url.
func (t *topics) publishCommand(url, typ string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	m := &sarama.ProducerMessage{Topic: t.prefix + "documents", Key: sarama.StringEncoder(url), Value: sarama.ByteEncoder(b)}
	for _, h := range [][2]string{
		{"ce_specversion", "1.0"}, {"ce_id", rand.Text()}, {"ce_source", "urn:campaign"}, {"ce_type", typ}, {"ce_subject", url},
		{"content-type", "application/json"},
	} {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h[0]), Value: []byte(h[1])})
	}
	_, _, err = t.producer.SendMessage(m)
	return err
}

// endHeader is a header of the records that say that nothing follows.
const endHeader = "campaign-end"

// writeEndMarkers appends a record with endHeader to each partition of topic.
func (t *topics) writeEndMarkers(topic string) error {
	parts, err := t.client.Partitions(t.prefix + topic)
	if err != nil {
		return err
	}
	for _, p := range parts {
		m := &sarama.ProducerMessage{Topic: t.prefix + topic, Partition: p, Key: sarama.StringEncoder(endHeader),
			Headers: []sarama.RecordHeader{{Key: []byte(endHeader), Value: []byte("1")}}}
		if _, _, err := t.producer.SendMessage(m); err != nil {
			return err
		}
	}
	return nil
}

// deleteTopics deletes the topics, where the brokers are somebody else's.
func (t *topics) deleteTopics() error {
	admin, err := sarama.NewClusterAdminFromClient(t.client)
	if err != nil {
		return err
	}
	all, err := admin.ListTopics()
	if err != nil {
		return err
	}
	for name := range all {
		if strings.HasPrefix(name, t.prefix) {
			err = errors.Join(err, admin.DeleteTopic(name))
		}
	}
	return err
}
