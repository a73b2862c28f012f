package contract

import (
	"bytes"
	"context"
	"testing"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	"github.com/cloudevents/sdk-go/v2/binding"

	"github.com/vokter/vokter/pipeline/flow"
)

// record is m as it stands in a topic of Kafka.
func record(m flow.Message) *sarama.ConsumerMessage {
	r := &sarama.ConsumerMessage{Topic: m.Topic, Key: []byte(m.Key), Value: m.Body}
	for name, value := range m.Metadata() {
		r.Headers = append(r.Headers, &sarama.RecordHeader{Key: []byte(name), Value: []byte(value)})
	}
	return r
}

// readsAsCloudEvent checks that the SDK of CloudEvents reads from r what m says.
func readsAsCloudEvent(t *testing.T, r *sarama.ConsumerMessage, m flow.Message) {
	t.Helper()
	read := kafka_sarama.NewMessageFromConsumerMessage(r)
	if got := read.ReadEncoding(); got != binding.EncodingBinary {
		t.Fatalf("%s %s: read as %v, want binary mode", m.Type, m.ID, got)
	}
	e, err := binding.ToEvent(context.Background(), read)
	if err != nil {
		t.Fatalf("%s %s: %v", m.Type, m.ID, err)
	}
	if err := e.Validate(); err != nil {
		t.Errorf("%s %s: %v", m.Type, m.ID, err)
	}
	source := m.Source
	if source == "" {
		source = flow.SourceVokter
	}
	if e.ID() != m.ID || e.Type() != m.Type || e.Source() != source || e.Subject() != m.Subject || e.SpecVersion() != "1.0" {
		t.Errorf("%s %s: read as %v", m.Type, m.ID, e)
	}
	if !e.Time().Equal(m.Time) {
		t.Errorf("%s %s: time %v, want %v", m.Type, m.ID, e.Time(), m.Time)
	}
	if len(m.Body) > 0 && e.DataContentType() != "application/json" || !bytes.Equal(e.Data(), m.Body) {
		t.Errorf("%s %s: %s %q, want %q", m.Type, m.ID, e.DataContentType(), e.Data(), m.Body)
	}
}
