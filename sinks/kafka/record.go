package kafka

import (
	"cmp"
	"context"
	"fmt"

	"github.com/IBM/sarama"
	watermillkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// newMessage returns the message for n, with the key of its record.
func (s *Sink) newMessage(ctx context.Context, n pipeline.Notification) (*message.Message, error) {
	e, err := flow.CloudEvent(n)
	if err != nil {
		return nil, err
	}
	value, err := s.schemas.value(ctx, s.cfg.clusterConfig(), e)
	if err != nil {
		return nil, err
	}
	e.Key = s.recordKey(ctx, n)
	m := message.NewMessage(n.ID, value)
	m.Metadata = e.Metadata()
	return m, nil
}

// marshaler makes records of messages that have at most so many bytes.
type marshaler struct{ maxBytes int }

var _ watermillkafka.Marshaler = marshaler{}

// tooLargeError is the error for a record of size bytes, which is more than the sink allows.
type tooLargeError struct{ size int }

func (e *tooLargeError) Error() string { return fmt.Sprintf("the record has %d bytes", e.size) }

// recordVersion is the format of records with headers.
const recordVersion = 2

// Marshal returns m as a record of topic, or a *tooLargeError.
func (m marshaler) Marshal(topic string, msg *message.Message) (*sarama.ProducerMessage, error) {
	r := recordOf(topic, msg)
	if size := r.ByteSize(recordVersion); size > m.maxBytes {
		return nil, &tooLargeError{size}
	}
	return r, nil
}

// recordOf returns m as a record of topic: a CloudEvent in the binary mode of its Kafka protocol binding.
func recordOf(topic string, m *message.Message) *sarama.ProducerMessage {
	r := &sarama.ProducerMessage{
		Topic: topic, Key: sarama.StringEncoder(m.Metadata[flow.HeaderKey]), Value: sarama.ByteEncoder(m.Payload),
		Headers: make([]sarama.RecordHeader, 0, len(m.Metadata)),
	}
	for name, value := range m.Metadata {
		if name != flow.HeaderKey {
			r.Headers = append(r.Headers, sarama.RecordHeader{Key: []byte(name), Value: []byte(value)})
		}
	}
	return r
}

// recordKey returns the key of the record for n; it is never empty.
func (s *Sink) recordKey(ctx context.Context, n pipeline.Notification) string {
	switch s.cfg.Key {
	case KeyNotification:
		return n.ID
	case KeyClient:
		return cmp.Or(n.Client, pageOf(n))
	case KeyDocument:
		return cmp.Or(pipeline.AttemptFrom(ctx).Document(), pageOf(n))
	}
	return pageOf(n)
}

// pageOf returns the page of n, spelled as in the pipeline's topics. For health events about no
// page it returns the receiver or the process.
func pageOf(n pipeline.Notification) string {
	if n.Health != nil && n.URL == "" {
		return flow.HealthMessage(*n.Health).Key
	}
	if canonical, err := pageurl.Canonical(n.URL); err == nil {
		return canonical
	}
	return cmp.Or(n.URL, n.ID)
}
