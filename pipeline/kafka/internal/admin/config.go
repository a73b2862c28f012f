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
		if _, err = client.Do(ctx, func() (struct{}, error) { return struct{}{}, c.stateLost(conn.Client, conn.Admin) }, nil); err == nil {
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
