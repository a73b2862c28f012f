package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// ClientID names us in the brokers' logs, metrics and quotas.
const ClientID = "vokter"

// Sarama returns the settings that all connections have in common. They suit clients, admins and
// PartitionConsumers as they are; the caller drains their Errors(). It fails where a file that
// c.TLS names cannot be read.
func (c Config) Sarama() (*sarama.Config, error) {
	conf := sarama.NewConfig()
	conf.ClientID = ClientID
	conf.Version = sarama.V2_8_0_0 // topics have IDs; brokers of today still speak it
	conf.ChannelBufferSize = 16
	conf.Metadata.AllowAutoTopicCreation = false
	// A minute: what outlasts it is retried above.
	conf.Metadata.Retry.Max, conf.Metadata.Retry.Backoff = 120, 500*time.Millisecond
	conf.Net.DialTimeout, conf.Net.WriteTimeout = 5*time.Second, 15*time.Second
	conf.Net.ReadTimeout = 30 * time.Second // more than Rebalance.Timeout, for which JoinGroup waits
	conf.Admin.Timeout = 20 * time.Second
	conf.Admin.Retry.Max, conf.Admin.Retry.Backoff = 20, 250*time.Millisecond
	conf.Consumer.IsolationLevel = sarama.ReadCommitted
	conf.Consumer.Offsets.Initial = sarama.OffsetOldest
	conf.Consumer.MaxWaitTime = 100 * time.Millisecond
	conf.Consumer.Retry.Backoff = 500 * time.Millisecond
	conf.Consumer.Return.Errors = true
	if c.TLS.Enable {
		tlsConf, err := c.TLS.config()
		if err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		conf.Net.TLS.Enable, conf.Net.TLS.Config = true, tlsConf
	}
	c.SASL.apply(conf)
	return conf, nil
}

// ConsumerGroup returns the settings of a consumer group that reads topics which are not the
// transport's, from the oldest record on and without records that were never committed. It
// fails where a file that c.TLS names cannot be read.
func (c Config) ConsumerGroup() (*sarama.Config, error) {
	conf, err := c.Group(DefaultSessionTimeout)
	if err != nil {
		return nil, err
	}
	// The source reports what is wrong when it is started again after a pause.
	conf.Metadata.Retry.Max = 10
	conf.Consumer.Return.Errors = false
	return conf, nil
}

// DefaultSessionTimeout is how long a member of a consumer group may be silent before its
// partitions go to others.
const DefaultSessionTimeout = 10 * time.Second

// Group returns the settings of a consumer group whose members may be silent for session.
func (c Config) Group(session time.Duration) (*sarama.Config, error) {
	conf, err := c.Sarama()
	if err != nil {
		return nil, err
	}
	conf.Consumer.Offsets.AutoCommit.Interval = 500 * time.Millisecond
	g := &conf.Consumer.Group
	g.Session.Timeout = session
	// A member learns of another one with its heartbeat.
	g.Heartbeat.Interval = min(time.Second, session/3)
	g.Rebalance.Timeout = 20 * time.Second
	g.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}
	return conf, nil
}

// Producer returns the configuration of an idempotent producer that writes to topics which are
// not the transport's, with the connection settings of c. A key's partition is that which
// Kafka's Java client chooses. What brokers do not take within seconds fails: whoever has a
// queue tries it again. It fails where a file that c.TLS names cannot be read.
func (c Config) Producer() (*sarama.Config, error) {
	conf, err := c.Sarama()
	if err != nil {
		return nil, err
	}
	conf.Metadata.Retry.Max, conf.Metadata.Retry.Backoff = 4, 250*time.Millisecond
	conf.Net.ReadTimeout = 12 * time.Second // more than Producer.Timeout, for which an answer may wait
	conf.Net.MaxOpenRequests = 1            // idempotence asks for it
	p := &conf.Producer
	p.Idempotent, p.RequiredAcks = true, sarama.WaitForAll
	p.Return.Successes, p.Return.Errors = true, true
	p.Retry.Max, p.Retry.Backoff = 20, 250*time.Millisecond // longer than a partition needs for a new leader
	p.Transaction.Retry.Max = 10
	p.Compression = sarama.CompressionNone // any consumer can read it
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
	return nil, fmt.Errorf("kafka: %w", c.Unanswered(err))
}

// Reason says what err, one of sarama's, means in words for the operator, without secrets.
func (c Config) Reason(err error) string {
	if fatal := refusal(c, err); fatal != nil {
		return fatal.Error()
	}
	return c.Cause(err)
}

// CreateCommand returns the command of Kafka that makes topic with the brokers' defaults.
func (c Config) CreateCommand(topic string) string {
	return fmt.Sprintf("kafka-topics %s --create --topic %s", c.Bootstrap(), topic)
}

// AlterCommand returns the command of Kafka that sets a setting of topic.
func (c Config) AlterCommand(topic, setting, value string) string {
	return fmt.Sprintf("kafka-configs %s --alter --entity-type topics --entity-name %s --add-config %s=%s", c.Bootstrap(), topic, setting, value)
}

// Bootstrap returns the flags with which the commands of Kafka find the brokers. An operator who
// logs in writes that into client.properties.
func (c Config) Bootstrap() string {
	s := "--bootstrap-server " + strings.Join(c.Brokers, ",")
	if c.TLS.Enable || c.SASL.Mechanism != "" {
		s += " --command-config client.properties"
	}
	return s
}
