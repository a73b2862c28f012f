// Package admin creates and checks what a transport needs in a Kafka cluster: the topics, their
// settings and the rights of this process. It also configures the producers of the transport.
package admin

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// defaultReplication is the number of replicas of a topic if there are enough brokers.
const defaultReplication = 3

// Config describes the topics of a transport. See kafka.Config for its fields.
type Config struct {
	cluster.Config
	Prefix, Group      string
	Lanes, Replication int
	// NoCreate makes missing topics an error instead of creating them.
	NoCreate bool
	Logger   *slog.Logger
}

// Connection is a connection to a cluster whose topics exist and have suitable settings.
type Connection struct {
	Client sarama.Client
	Admin  sarama.ClusterAdmin // closes Client, too
	Topics Info
}

// retryInterval is how long Connect rests between two attempts.
const retryInterval = 500 * time.Millisecond

// Connect waits for brokers, creates missing topics and checks all of them. When ctx is done it
// returns the cause. While it waits it calls waiting with the reason, and with nil when the wait
// is over. The caller closes the Connection, even if there is an error.
func (c Config) Connect(ctx context.Context, topics map[string]flow.Topic, waiting func(reason error)) (conn Connection, err error) {
	if conn.Client, err = c.Await(ctx, c.Logger, waiting); err != nil {
		return conn, err
	}
	if conn.Admin, err = sarama.NewClusterAdminFromClient(conn.Client); err != nil {
		return conn, fmt.Errorf("kafka: %w", err)
	}
	for {
		// First make sure that no state was lost: Ensure creates missing topics.
		if err = client.Run(ctx, func() error { return c.checkStateLost(conn.Client, conn.Admin) }); err == nil {
			conn.Topics, err = Ensure(ctx, conn.Admin, c, c.Specs(topics))
		}
		if err == nil || ctx.Err() != nil || !client.Away(err) {
			break
		}
		waiting(err)
		_ = client.Sleep(ctx, retryInterval) // the next attempt fails when ctx is done
	}
	waiting(nil)
	return conn, err
}

// Close ends the connection.
func (c Connection) Close() error {
	switch {
	case c.Admin != nil:
		return c.Admin.Close()
	case c.Client != nil:
		return c.Client.Close()
	}
	return nil
}

// MaxRecord is the maximum size of a record in bytes before compression. Changes between two
// versions are JSON, which compresses well.
const MaxRecord = 32 << 20

// ProducerConfig returns the configuration of an idempotent producer that puts each message
// into the partition that it names, or that of its key if it names AnyPartition. It retries for a minute while the brokers are unreachable.
func (c Config) ProducerConfig() (*sarama.Config, error) {
	conf, err := c.Sarama()
	if err != nil {
		return nil, err
	}
	conf.Net.MaxOpenRequests = 1 // idempotence asks for it
	p := &conf.Producer
	p.Idempotent, p.RequiredAcks = true, sarama.WaitForAll
	p.Retry.Max, p.Retry.Backoff = 240, 250*time.Millisecond
	p.Compression, p.CompressionLevel = sarama.CompressionZSTD, 1 // most records are packed already
	p.MaxMessageBytes = client.MaxMessage
	p.Partitioner = newPartitioner
	// Partitions that are added to a topic are used after that time.
	conf.Metadata.Full, conf.Metadata.RefreshFrequency = false, refreshFrequency
	p.Return.Successes, p.Return.Errors = true, true
	return conf, nil
}

// AnyPartition is the partition of a message that goes into that of its key, whatever partitions its topic has.
const AnyPartition = -1

// refreshFrequency is how often a producer asks which partitions there are.
const refreshFrequency = time.Minute

// partitioner is the manual partitioner, except for AnyPartition.
type partitioner struct{ byKey sarama.Partitioner }

func newPartitioner(topic string) sarama.Partitioner {
	return partitioner{sarama.NewMurmur2Partitioner(topic)}
}

// Partition implements sarama.Partitioner.
func (p partitioner) Partition(m *sarama.ProducerMessage, partitions int32) (int32, error) {
	if m.Partition == AnyPartition {
		return p.byKey.Partition(m, partitions)
	}
	return m.Partition, nil
}

// RequiresConsistency implements sarama.Partitioner: a partition whose leader is away is waited for.
func (partitioner) RequiresConsistency() bool { return true }

// txnLinger is how long a transactional producer collects records before it sends them. Without it Sarama
// sends the first record of a transaction at once, alone, and then what arrived during that request, and so
// on: nine requests in place of one or two.
const txnLinger = 2 * time.Millisecond

// Fencer opens the transactional producer of a lane, which fences that of the previous owner.
func (c Config) Fencer(ctx context.Context, lane int) (*client.Producer, error) {
	p, err := c.TxnProducer(ctx, fmt.Sprintf("%s-%d", c.Group, lane))
	if err != nil {
		return nil, fmt.Errorf("fencing the previous owner: %w", err)
	}
	return p, nil
}

// TxnProducer opens the transactional producer that id names. When ctx is done it returns the cause.
func (c Config) TxnProducer(ctx context.Context, id string) (*client.Producer, error) {
	conf, err := c.TxnConfig(id)
	if err != nil {
		return nil, err
	}
	open := func() (*client.Producer, error) { return client.NewProducer(c.Brokers, conf) }
	return client.Do(ctx, open, func(late *client.Producer) { _ = late.Close() })
}

// TxnConfig returns the configuration of the transactional producer that id names.
// Another producer with the same id fences it.
func (c Config) TxnConfig(id string) (*sarama.Config, error) {
	conf, err := c.ProducerConfig()
	if err != nil {
		return nil, err
	}
	conf.Producer.MaxMessageBytes = MaxRecord // Transact splits what is sent
	conf.Producer.Flush.Frequency = txnLinger
	t := &conf.Producer.Transaction
	t.ID = id
	t.Timeout = 10 * time.Second // how long readers wait for an open transaction of a frozen process
	t.Retry.Max = 260            // a minute
	t.Retry.BackoffFunc = func(retries, _ int) time.Duration {
		// The previous transaction is usually completed within milliseconds.
		if retries < 20 {
			return 2 * time.Millisecond
		}
		return 250 * time.Millisecond
	}
	return conf, nil
}
