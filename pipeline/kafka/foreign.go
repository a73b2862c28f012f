package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// ConsumerGroup returns the configuration of a consumer group that reads topics which are not
// the transport's, with the connection settings of c, from the oldest record on and without
// what was never committed. It fails where a file that c.TLS names cannot be read.
func (c Config) ConsumerGroup() (*sarama.Config, error) {
	conf, err := c.withDefaults().groupConfig()
	if err != nil {
		return nil, err
	}
	// Whoever starts the source again after a pause tells what is wrong.
	conf.Metadata.Retry.Max = 10
	conf.Consumer.Return.Errors = false
	return conf, nil
}

// Producer returns the configuration of an idempotent producer that writes to topics which are
// not the transport's, with the connection settings of c. A key's partition is that which
// Kafka's Java client chooses. What brokers do not take within seconds fails: whoever has a
// queue tries it again. It fails where a file that c.TLS names cannot be read.
func (c Config) Producer() (*sarama.Config, error) {
	conf, err := c.withDefaults().producerConfig()
	if err != nil {
		return nil, err
	}
	conf.Metadata.Retry.Max, conf.Metadata.Retry.Backoff = 4, 250*time.Millisecond
	conf.Net.ReadTimeout = 12 * time.Second // more than Producer.Timeout, for which an answer may wait
	p := &conf.Producer
	p.Retry.Max, p.Retry.Backoff = 20, 250*time.Millisecond // longer than a partition needs for a new leader
	p.Transaction.Retry.Max = 10
	p.Compression = sarama.CompressionNone // any consumer can read it
	p.MaxMessageBytes = sarama.NewConfig().Producer.MaxMessageBytes
	p.Partitioner = sarama.NewMurmur2Partitioner
	return conf, nil
}

// Connect returns a client of the cluster once one of its brokers has answered, which each is
// asked for once. conf is one of c's. The error says what is wrong in words for the operator,
// without secrets; it is the cause of ctx once that is done. The caller closes the client.
func (c Config) Connect(ctx context.Context, conf *sarama.Config) (sarama.Client, error) {
	client, err := probe(ctx, c, conf)
	switch {
	case err == nil:
		return client, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	if fatal := refusal(c, err); fatal != nil {
		return nil, fatal
	}
	return nil, fmt.Errorf("kafka: %w", unanswered(c, err))
}

// Reason says what err, one of sarama's, means in words for the operator, without secrets.
func (c Config) Reason(err error) string {
	if fatal := refusal(c, err); fatal != nil {
		return fatal.Error()
	}
	return plain(c, err)
}

// CreateCommand returns the command of Kafka that makes topic with the brokers' defaults.
func (c Config) CreateCommand(topic string) string {
	return fmt.Sprintf("kafka-topics %s --create --topic %s", c.bootstrap(), topic)
}

// AlterCommand returns the command of Kafka that sets a setting of topic.
func (c Config) AlterCommand(topic, setting, value string) string {
	return c.alterCommand(topic, setting, value)
}
