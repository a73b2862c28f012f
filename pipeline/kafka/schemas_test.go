package kafka

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/test/kafkatest"
)

// TestRecordsCarryTheIDsOfTheirSchemas: a start waits for the registry. Public records have the ID of their schema in
// front of them, internal ones have none, and handlers get the JSON alone.
func TestRecordsCarryTheIDsOfTheirSchemas(t *testing.T) {
	t.Parallel()
	c := testConfig(kafkatest.Start(t))
	c.Lanes = testLanes
	registry := srfake.New()
	defer registry.Close()
	refused := 0
	registry.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if refused++; refused <= 2 {
			http.Error(w, "{}", http.StatusServiceUnavailable)
		}
		return refused <= 2
	})
	c.SchemaRegistry = cluster.SchemaRegistry{URL: registry.URL()}
	topics := map[string]flow.Topic{flow.TopicHealth: {Groups: []string{"g"}}, flow.TopicSweeps: {Groups: []string{"g"}}}
	tr := openTransportWith(t, c, flow.Wiring{Topics: topics, Source: func() string { return "urn:acme" }})
	json := []byte(`{"id":"1"}`)
	records := make(chan *sarama.ConsumerMessage, 10)
	for _, topic := range []string{flow.TopicHealth, flow.TopicSweeps} {
		consumeRecords(t, c.Brokers, c.Prefix+topic, func(m *sarama.ConsumerMessage) { records <- m })
	}
	for topic, typ := range map[string]string{flow.TopicHealth: flow.TypeHealth, flow.TopicSweeps: flow.TypeSweep} {
		got := subscribe(t, tr, "g", topic)
		m := flow.Message{ID: "1", Topic: topic, Key: "k", Type: typ, Header: map[string]string{"content-type": "application/json"}, Body: json}
		if err := tr.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		handled := <-got
		if !bytes.Equal(handled.Payload, json) || handled.Metadata.Get("ce_source") != "urn:acme" {
			t.Errorf("%s: the handler got %q, %v", typ, handled.Payload, handled.Metadata)
		}
		handled.Ack()
		var r *sarama.ConsumerMessage
		for r = <-records; r.Key == nil; r = <-records { // markers have none
		}
		want := json
		if s, ok := registry.GetSchema(typ, 1); ok {
			want = append([]byte{0, 0, 0, 0, byte(s.ID)}, json...)
		}
		if !bytes.Equal(r.Value, want) || (typ == flow.TypeHealth) == bytes.Equal(r.Value, json) {
			t.Errorf("%s: the record is %q, want %q", typ, r.Value, want)
		}
	}
}

// TestFramedCommands: other programs may write commands with the ID of a schema, too.
func TestFramedCommands(t *testing.T) {
	t.Parallel()
	c := testConfig(kafkatest.Start(t))
	tr := openTransportWith(t, c, flow.Wiring{Topics: map[string]flow.Topic{flow.TopicDocuments: {Groups: []string{"g"}}}})
	got := subscribe(t, tr, "g", flow.TopicDocuments)
	r := &sarama.ProducerMessage{Topic: c.Prefix + flow.TopicDocuments, Value: sarama.ByteEncoder("\x00\x00\x00\x00\x07{}"), Headers: []sarama.RecordHeader{
		{Key: []byte("ce_id"), Value: []byte("1")}, {Key: []byte("ce_type"), Value: []byte(flow.TypeCancel)},
	}}
	if _, _, err := newProducer(t, c.Brokers, kafkatest.Config()).SendMessage(r); err != nil {
		t.Fatal(err)
	}
	m := <-got
	m.Ack()
	if string(m.Payload) != "{}" {
		t.Errorf("got %q", m.Payload)
	}
}
