package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/registry"
)

func TestKafka(t *testing.T) {
	const text = `
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
    tls: {enable: true, ca: ca.pem, cert: c.pem, key: k.pem, server_name: kafka, insecure: true}
    sasl: {mechanism: SCRAM-SHA-512, user: vokter, password_file: testdata/secret.txt}
`
	c, err := Parse("c.yaml", []byte(text), options(map[string]string{"POD": "pod-3"}))
	if err != nil {
		t.Fatal(err)
	}
	want := &Kafka{
		Brokers: []string{"a.example.com:9092", "[::1]:9093"}, TopicPrefix: "shop.", Partitions: 64, Replication: 3,
		Group: "shop", InstanceID: "pod-3", SessionTimeout: 30 * time.Second,
		TLS:  KafkaTLS{Enable: true, CA: "ca.pem", Cert: "c.pem", Key: "k.pem", ServerName: "kafka", Insecure: true},
		SASL: KafkaSASL{Mechanism: "SCRAM-SHA-512", User: "vokter", Password: registry.NewSecret("from a file")},
	}
	if !reflect.DeepEqual(c.Kafka, want) {
		t.Errorf("got %+v, want %+v", c.Kafka, want)
	}
	if got := c.Kafka.SASL.Password.Reveal(); got != want.SASL.Password.Reveal() {
		t.Errorf("password: got %q, want %q", got, want.SASL.Password.Reveal())
	}
	if s := fmt.Sprintf("%v %+v %#v", c.Kafka, *c.Kafka, *c.Kafka); strings.Contains(s, "from a file") {
		t.Errorf("the password is shown: %s", s)
	}
}

func TestKafkaDefaults(t *testing.T) {
	c, err := Parse("c.yaml", []byte(`transport: {kafka: {brokers: ["a:9092"]}}`), options(nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := NewKafka("a:9092"); !reflect.DeepEqual(c.Kafka, want) || !c.Kafka.CreateTopics {
		t.Errorf("got %+v, want %+v", c.Kafka, want)
	}
	for _, local := range []string{"", "transport: local", "transport: {local: {}}"} {
		if c, err := Parse("c.yaml", []byte(local), options(nil)); err != nil || c.Kafka != nil {
			t.Errorf("%q: got %+v, %v", local, c, err)
		}
	}
}
