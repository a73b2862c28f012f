package kafka

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// clientID names us in the brokers' logs, metrics and quotas.
const clientID = "vokter"

const (
	// maxMessage is how many bytes the brokers take at once: the texts of two versions, packed
	// together, with what goes with them.
	maxMessage = 6 << 20
	// maxRecord is how many bytes a record may have before it is packed. What differs between
	// two versions is written as JSON, which packs well.
	maxRecord = 32 << 20
)

// sarama returns what all connections have in common. It suits clients, admins and
// PartitionConsumers as it is; whoever makes one of these drains its Errors().
func (c Config) sarama() (*sarama.Config, error) {
	conf := sarama.NewConfig()
	conf.ClientID = clientID
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

// groupConfig returns the configuration of the consumer group.
func (c Config) groupConfig() (*sarama.Config, error) {
	conf, err := c.sarama()
	if err != nil {
		return nil, err
	}
	conf.Consumer.Offsets.AutoCommit.Interval = 500 * time.Millisecond
	g := &conf.Consumer.Group
	g.InstanceId = c.InstanceID
	g.Session.Timeout = c.SessionTimeout
	// A member learns of another one with its heartbeat.
	g.Heartbeat.Interval = min(time.Second, c.SessionTimeout/3)
	g.Rebalance.Timeout = 20 * time.Second
	g.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}
	return conf, nil
}

// producerConfig returns the configuration of an idempotent producer that puts each message
// into the partition that it names. It outlasts a minute without brokers.
func (c Config) producerConfig() (*sarama.Config, error) {
	conf, err := c.sarama()
	if err != nil {
		return nil, err
	}
	conf.Net.MaxOpenRequests = 1 // idempotence asks for it
	p := &conf.Producer
	p.Idempotent, p.RequiredAcks = true, sarama.WaitForAll
	p.Retry.Max, p.Retry.Backoff = 240, 250*time.Millisecond
	p.Compression = sarama.CompressionZSTD
	p.MaxMessageBytes = maxMessage
	p.Partitioner = sarama.NewManualPartitioner
	p.Return.Successes, p.Return.Errors = true, true
	return conf, nil
}

// txnConfig returns the configuration of the transactional producer that id names: another
// one under the same id fences it.
func (c Config) txnConfig(id string) (*sarama.Config, error) {
	conf, err := c.producerConfig()
	if err != nil {
		return nil, err
	}
	conf.Producer.MaxMessageBytes = maxRecord // see parts
	t := &conf.Producer.Transaction
	t.ID = id
	t.Timeout = 10 * time.Second // how long readers wait for what a frozen process left open
	t.Retry.Max = 260            // a minute
	t.Retry.BackoffFunc = func(retries, _ int) time.Duration {
		// The transaction before this one is settled within milliseconds, mostly.
		if retries < 20 {
			return 2 * time.Millisecond
		}
		return 250 * time.Millisecond
	}
	return conf, nil
}

// murmur2 hashes as Kafka's Java client does.
var murmur2 = sarama.NewMurmur2Partitioner("")

// partitionOf returns the partition of key among lanes of them, as the default partitioner
// of Kafka's Java client does for keys. It is safe for concurrent use. lanes is at least 1.
func partitionOf(key string, lanes int) int {
	p, err := murmur2.Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder(key)}, int32(lanes))
	if err != nil {
		panic(fmt.Sprintf("kafka: partition of %q: %v", key, err)) // strings encode
	}
	return int(p)
}
