// Package admin makes and checks what a transport needs of a Kafka cluster: its topics, their
// settings, the rights of this process, and the producers that write to them.
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

// DefaultReplication is in how many brokers a topic is kept where there are as many.
const DefaultReplication = 3

// Config says what the topics of a transport are like. See kafka.Config for its fields.
type Config struct {
	cluster.Config
	Prefix, Group      string
	Lanes, Replication int
	// NoCreate refuses missing topics instead of making them.
	NoCreate bool
	Logger   *slog.Logger
}

// Connection is a connection to a cluster whose topics stand and fit.
type Connection struct {
	Client sarama.Client
	Admin  sarama.ClusterAdmin // closes Client, too
	Topics Info
}

// retryEvery is how long Connect rests between two attempts.
const retryEvery = 500 * time.Millisecond

// Connect waits for brokers until ctx is done, whose cause it then returns, and makes and checks
// topics. Meanwhile it calls waiting with the reason, and with nil when it goes on. What it
// returns is to be closed also where there is an error.
func (c Config) Connect(ctx context.Context, topics map[string]flow.Topic, waiting func(reason error)) (conn Connection, err error) {
	if conn.Client, err = c.Await(ctx, c.Logger, waiting); err != nil {
		return conn, err
	}
	if conn.Admin, err = sarama.NewClusterAdminFromClient(conn.Client); err != nil {
		return conn, fmt.Errorf("kafka: %w", err)
	}
	for {
		// Only once it is known that no state was lost: Ensure makes missing topics.
		if err = client.Run(ctx, func() error { return c.stateLost(conn.Client, conn.Admin) }); err == nil {
			conn.Topics, err = Ensure(ctx, conn.Admin, c, c.Specs(topics))
		}
		if err == nil || ctx.Err() != nil || !client.Away(err) {
			break
		}
		waiting(err)
		select {
		case <-ctx.Done():
		case <-time.After(retryEvery):
		}
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

// MaxRecord is how many bytes a record may have before it is packed. What differs between two
// versions is written as JSON, which packs well.
const MaxRecord = 32 << 20

// ProducerConfig returns the configuration of an idempotent producer that puts each message
// into the partition that it names. It outlasts a minute without brokers.
func (c Config) ProducerConfig() (*sarama.Config, error) {
	conf, err := c.Sarama()
	if err != nil {
		return nil, err
	}
	conf.Net.MaxOpenRequests = 1 // idempotence asks for it
	p := &conf.Producer
	p.Idempotent, p.RequiredAcks = true, sarama.WaitForAll
	p.Retry.Max, p.Retry.Backoff = 240, 250*time.Millisecond
	p.Compression = sarama.CompressionZSTD
	p.MaxMessageBytes = client.MaxMessage
	p.Partitioner = sarama.NewManualPartitioner
	p.Return.Successes, p.Return.Errors = true, true
	return conf, nil
}

// TxnConfig returns the configuration of the transactional producer that id names.
// Another producer with the same id fences it.
func (c Config) TxnConfig(id string) (*sarama.Config, error) {
	conf, err := c.ProducerConfig()
	if err != nil {
		return nil, err
	}
	conf.Producer.MaxMessageBytes = MaxRecord // Transact splits what is sent
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
