package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/IBM/sarama"
	"github.com/vokter/vokter/test/kafkatest"
)

func TestProducerForTopicsOfOthers(t *testing.T) {
	c := Config{Brokers: kafkatest.Start(t)}
	conf, err := c.Producer()
	if err != nil {
		t.Fatal(err)
	}
	if err := conf.Validate(); err != nil {
		t.Error(err)
	}
	if p := conf.Producer; !p.Idempotent || p.RequiredAcks != sarama.WaitForAll || p.Compression != sarama.CompressionNone || conf.Net.ReadTimeout <= p.Timeout {
		t.Errorf("got idempotent %t, acks %d, compression %v, timeouts %v and %v", p.Idempotent, p.RequiredAcks, p.Compression, conf.Net.ReadTimeout, p.Timeout)
	}
	client, err := c.Connect(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Brokers = []string{"127.0.0.1:1"}
	if _, err := c.Connect(ctx, conf); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	_, err = c.Connect(t.Context(), conf)
	if err == nil {
		t.Fatal("connected to nothing")
	}
	kafkatest.Mention(t, err.Error(), "no broker answers at 127.0.0.1:1", "connection refused")
	c.TLS.Enable = true
	kafkatest.Mention(t, c.CreateCommand("alerts"), "kafka-topics --bootstrap-server 127.0.0.1:1 --command-config client.properties --create --topic alerts")
}
