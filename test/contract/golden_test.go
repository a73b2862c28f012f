package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	"github.com/cloudevents/sdk-go/v2/binding"

	"github.com/vokter/vokter/pipeline/flow"
)

// golden is a message that was published once, as it stood in its topic. It is never
// changed: what is kept there must be understood for ever.
type golden struct {
	Key     string            `json:"key"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// TestWhatWasPublishedOnce is still described by the schemas, and still read whole.
func TestWhatWasPublishedOnce(t *testing.T) {
	all := schemas(t)
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	seen := make(map[string]bool)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g golden
		if err := json.Unmarshal(b, &g); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		typ := g.Headers["ce_type"]
		seen[typ] = true
		if bodies[typ] == nil {
			t.Errorf("%s: the type %q is not known", file, typ)
			continue
		}
		if err := all[typ].Validate(instance(t, g.Body)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if err := headersOf(t, typ).Validate(headers(g.Headers)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		body := reflect.New(reflect.TypeOf(bodies[typ]))
		d := json.NewDecoder(bytes.NewReader(g.Body))
		d.DisallowUnknownFields()
		if err := d.Decode(body.Interface()); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		again, err := json.Marshal(body.Elem().Interface())
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if json.Unmarshal(g.Body, &want) != nil || json.Unmarshal(again, &got) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read and written again it is\n%s, want\n%s", file, again, g.Body)
		}
	}
	for typ := range bodies {
		if !seen[typ] {
			t.Errorf("no golden file has the type %s", typ)
		}
	}
}

// headers are h as the validator wants them, without what is not for readers.
func headers(h map[string]string) map[string]any {
	all := make(map[string]any)
	for name, value := range h {
		if !strings.EqualFold(name, "vokter_key") {
			all[name] = value
		}
	}
	return all
}

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
