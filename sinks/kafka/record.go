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
	usualHeaders = 7
	usualHeader  = 48
)

// record returns the record for n.
func (s *Sink) record(ctx context.Context, n pipeline.Notification) (*sarama.ProducerMessage, error) {
	e, err := flow.CloudEvent(n)
	if err != nil {
		return nil, err
	}
	m := &sarama.ProducerMessage{
		Topic: s.c.Topic, Key: sarama.StringEncoder(s.key(ctx, n)), Value: sarama.ByteEncoder(e.Body),
		Headers: make([]sarama.RecordHeader, 0, usualHeaders),
	}
	text := make([]byte, 0, usualHeaders*usualHeader) // of all headers, to allocate once
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

// key returns the key of the record for n; it is never empty.
func (s *Sink) key(ctx context.Context, n pipeline.Notification) string {
	switch s.c.Key {
	case KeyNotification:
		return n.ID
	case KeyClient:
		return cmp.Or(n.Client, page(n))
	case KeyDocument:
		return cmp.Or(pipeline.AttemptFrom(ctx).Document(), page(n))
	}
	return page(n)
}

// page returns the page of n, spelled as in the pipeline's topics. For health events about no
// page it returns the receiver or the process.
func page(n pipeline.Notification) string {
	if n.Health != nil && n.URL == "" {
		return flow.HealthMessage(*n.Health).Key
	}
	if canonical, err := pageurl.Canonical(n.URL); err == nil {
		return canonical
	}
	return cmp.Or(n.URL, n.ID)
}
