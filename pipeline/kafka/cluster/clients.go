package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// ClientID identifies Vokter in the logs, metrics and quotas of the brokers. The names of the members of
// the consumer group begin with it.
const ClientID = "vokter"

// Sarama returns the configuration that all connections have in common. It can be used as it is
// for clients, admins and consumers of partitions, whose Errors() the caller must drain. Sarama
// fails if a file that c.TLS names cannot be read.
func (c Config) Sarama() (*sarama.Config, error) {
	conf := sarama.NewConfig()
	conf.ClientID = ClientID
	conf.Version = sarama.V2_8_0_0 // topics have IDs; brokers of today still speak it
	conf.ChannelBufferSize = 16
	conf.Metadata.AllowAutoTopicCreation = false
	// A minute. Longer outages are retried by the callers.
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

// ConsumerGroup returns the configuration of a consumer group that reads topics of other programs:
// from the oldest record on, and only committed records. It fails if a file that c.TLS names
// cannot be read.
func (c Config) ConsumerGroup() (*sarama.Config, error) {
	conf, err := c.Group(DefaultSessionTimeout)
	if err != nil {
		return nil, err
	}
	// The source reports errors and is restarted after a pause.
	conf.Metadata.Retry.Max = 10
	conf.Consumer.Return.Errors = false
	return conf, nil
}

// DefaultSessionTimeout is how long a member of a consumer group may send no heartbeat before its
// partitions are assigned to others.
const DefaultSessionTimeout = 10 * time.Second

// Group returns the configuration of a consumer group with the given session timeout.
func (c Config) Group(session time.Duration) (*sarama.Config, error) {
	conf, err := c.Sarama()
	if err != nil {
		return nil, err
	}
	conf.Consumer.Offsets.AutoCommit.Interval = 500 * time.Millisecond
	g := &conf.Consumer.Group
	g.Session.Timeout = session
	// A member learns of a rebalance by its heartbeat.
	g.Heartbeat.Interval = min(time.Second, session/3)
	g.Rebalance.Timeout = 20 * time.Second
	g.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}
	return conf, nil
}

// Producer returns the configuration of an idempotent producer that writes to topics of other
// programs. It chooses the partition of a key as Kafka's Java client does. Publishing fails if
// the brokers do not accept a record within seconds; the caller retries. Producer fails if a file
// that c.TLS names cannot be read.
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

// Connect asks each broker once and returns a client of the cluster if one answers. conf is one of
// the configurations of c. The error says what is wrong in words for the operator, without
// secrets; if ctx is done it is the cause. The caller closes the client.
func (c Config) Connect(ctx context.Context, conf *sarama.Config) (sarama.Client, error) {
	client, err := probe(ctx, c, conf)
	switch {
	case err == nil:
		return client, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	if fatal := permanentError(c, err); fatal != nil {
		return nil, fatal
	}
	return nil, fmt.Errorf("kafka: %w", c.Unanswered(err))
}

// Reason describes err, which comes from Sarama, in words for the operator, without secrets.
func (c Config) Reason(err error) string {
	if fatal := permanentError(c, err); fatal != nil {
		return fatal.Error()
	}
	return c.Cause(err)
}

// CreateCommand returns the command of Kafka that creates topic with the brokers' defaults.
func (c Config) CreateCommand(topic string) string {
	return fmt.Sprintf("kafka-topics %s --create --topic %s", c.Bootstrap(), topic)
}

// AlterCommand returns the command of Kafka that sets a setting of topic.
func (c Config) AlterCommand(topic, setting, value string) string {
	return fmt.Sprintf("kafka-configs %s --alter --entity-type topics --entity-name %s --add-config %s=%s", c.Bootstrap(), topic, setting, value)
}

// Bootstrap returns the flags with which the commands of Kafka find the brokers. With TLS or a
// login the operator provides client.properties.
func (c Config) Bootstrap() string {
	s := "--bootstrap-server " + strings.Join(c.Brokers, ",")
	if c.TLS.Enable || c.SASL.Mechanism != "" {
		s += " --command-config client.properties"
	}
	return s
}
