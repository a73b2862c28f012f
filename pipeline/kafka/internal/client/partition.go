package client

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// closeFor is how long ClosePartition waits.
const closeFor = time.Second

// murmur2 hashes as Kafka's Java client does.
var murmur2 = sarama.NewMurmur2Partitioner("")

// PartitionOf returns the partition of key among lanes of them, as the default partitioner
// of Kafka's Java client does for keys. It is safe for concurrent use. lanes is at least 1.
func PartitionOf(key string, lanes int) int {
	p, err := murmur2.Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder(key)}, int32(lanes))
	if err != nil {
		panic(fmt.Sprintf("kafka: partition of %q: %v", key, err)) // strings encode
	}
	return int(p)
}

// OpenPartition begins to read a partition at offset from, unless ctx is done before that.
func OpenPartition(ctx context.Context, c sarama.Consumer, topic string, lane int, from int64) (sarama.PartitionConsumer, error) {
	return Do(ctx, func() (sarama.PartitionConsumer, error) {
		return c.ConsumePartition(topic, int32(lane), from)
	}, ClosePartition)
}

// ClosePartition ends pc, and waits for that, since a partition is read once at a time. It
// does not wait long: sarama looks for brokers first.
func ClosePartition(pc sarama.PartitionConsumer) {
	pc.AsyncClose()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range pc.Errors() { // closed behind Messages, which sarama empties itself
		}
	}()
	go func() {
		for range pc.Messages() {
		}
	}()
	timer := time.NewTimer(closeFor)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}
