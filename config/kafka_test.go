package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/registry"
)

// withKafka knows the transport over Kafka.
func withKafka(env map[string]string) Options {
	o := options(env)
	kafka.Register(o.Registry)
	return o
}

func TestKafka(t *testing.T) {
	text := `
transport:
  kafka:
    brokers: [a.example.com:9092, "[::1]:9093"]
    topic_prefix: shop.
    partitions: 64
    replication: 3
    create_topics: false
    group: shop
    instance_id: "${POD}"
    session_timeout: 30s
    tls: {enable: true, server_name: kafka, insecure: true}
    sasl: {mechanism: SCRAM-SHA-512, user: vokter, password_file: testdata/secret.txt}
`
	c, err := Parse("c.yaml", []byte(text), withKafka(map[string]string{"POD": "pod-3"}))
	if err != nil {
		t.Fatal(err)
	}
	want := &kafka.Config{
		Brokers: []string{"a.example.com:9092", "[::1]:9093"}, Prefix: "shop.", Lanes: 64, Replication: 3, CreateTopics: new(false),
		Group: "shop", InstanceID: "pod-3", SessionTimeout: 30 * time.Second,
		TLS:  cluster.TLS{Enable: true, ServerName: "kafka", Insecure: true},
		SASL: cluster.SASL{Mechanism: "SCRAM-SHA-512", User: "vokter", Password: registry.NewSecret("from a file")},
	}
	if !reflect.DeepEqual(c.Transport, want) {
		t.Errorf("got %+v, want %+v", c.Transport, want)
	}
	if s := fmt.Sprintf("%v %+v %#v", c.Transport, c.Transport, c.Transport); strings.Contains(s, "from a file") {
		t.Errorf("the password is shown: %s", s)
	}
}

func TestKafkaDefaults(t *testing.T) {
	c, err := Parse("c.yaml", []byte(`transport: {kafka: {brokers: ["a:9092"]}}`), withKafka(nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := (&kafka.Config{Brokers: []string{"a:9092"}}); !reflect.DeepEqual(c.Transport, want) {
		t.Errorf("got %+v, want %+v", c.Transport, want)
	}
	for _, local := range []string{"", "transport: local", "transport: {local: {}}"} {
		if c, err := Parse("c.yaml", []byte(local), withKafka(nil)); err != nil || c.Transport != nil {
			t.Errorf("%q: got %+v, %v", local, c, err)
		}
	}
}

// TestKafkaMistakes: what the transport finds wrong is told at its place.
func TestKafkaMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"transport: kafka":                                       "c.yaml:1:12: transport.kafka.brokers: at least one broker is needed, such as kafka-1:9092",
		"transport: {kafka: {brokers: [a]}}":                     "c.yaml:1:31: transport.kafka.brokers[0]: ",
		"transport: {kafka: {brokers: ['a:1'], partitions: -1}}": "c.yaml:1:51: transport.kafka.partitions: -1 is not between 1 and 10000",
		"transport: {kafka: {brokers: ['a:1'], tls: {enable: true, ca: " + filepath.Join("testdata", "none.pem") + "}}}": "transport.kafka.tls.ca: ",
	} {
		if _, err := Parse("c.yaml", []byte(text), withKafka(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
