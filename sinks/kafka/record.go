package kafka

import (
	"cmp"
	"context"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// What headers usually take: how many there are, and the bytes of each.
const (
	typicalHeaders    = 7
	typicalHeaderSize = 48
)

// newRecord returns the record for n.
func (s *Sink) newRecord(ctx context.Context, n pipeline.Notification) (*sarama.ProducerMessage, error) {
	e, err := flow.CloudEvent(n)
	if err != nil {
		return nil, err
	}
	value, err := s.schemas.value(ctx, s.cfg.clusterConfig(), e)
	if err != nil {
		return nil, err
	}
	m := &sarama.ProducerMessage{
		Topic: s.cfg.Topic, Key: sarama.StringEncoder(s.recordKey(ctx, n)), Value: sarama.ByteEncoder(value),
		Headers: make([]sarama.RecordHeader, 0, typicalHeaders),
	}
	text := make([]byte, 0, typicalHeaders*typicalHeaderSize) // of all headers, to allocate once
	add := func(s string) []byte {
		at := len(text)
		text = append(text, s...)
		return text[at:len(text):len(text)]
	}
	for name, value := range e.Attributes() {
		if name != flow.HeaderKey {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: add(name), Value: add(value)})
		}
	}
	return m, nil
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
