package client

import (
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/IBM/sarama"
)

// ErrClosed is returned by a closed Producer. Its transport is closed, or was not started.
var ErrClosed = errors.New("kafka: the transport is closed")

// MaxMessage is the maximum size in bytes of a batch of records after compression. It has room for
// the texts of two versions.
const MaxMessage = 6 << 20

// Producer wraps a producer of Sarama so that it can be closed while others still use it: Sarama
// panics if a message is sent after Close. Close waits for calls in progress.
type Producer struct {
	sarama.SyncProducer
	mu     sync.RWMutex // held for reading while it is used
	closed bool
}

// NewProducer returns a producer with the configuration c.
func NewProducer(brokers []string, c *sarama.Config) (sarama.SyncProducer, error) {
	p, err := sarama.NewSyncProducer(brokers, c)
	if err != nil {
		return nil, err
	}
	return &Producer{SyncProducer: p}, nil
}

// Use calls f while the producer is open, and keeps it open until f returns.
func (p *Producer) Use(f func() error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return ErrClosed
	}
	return f()
}

// SendMessage sends one message, unless the producer is closed.
func (p *Producer) SendMessage(m *sarama.ProducerMessage) (partition int32, offset int64, err error) {
	err = p.Use(func() (err error) {
		partition, offset, err = p.SyncProducer.SendMessage(m)
		return err
	})
	return partition, offset, err
}

// SendMessages sends several messages, unless the producer is closed.
func (p *Producer) SendMessages(ms []*sarama.ProducerMessage) error {
	return p.Use(func() error { return p.SyncProducer.SendMessages(ms) })
}

// BeginTxn begins a transaction, unless the producer is closed.
func (p *Producer) BeginTxn() error { return p.Use(p.SyncProducer.BeginTxn) }

// CommitTxn commits the transaction, unless the producer is closed.
func (p *Producer) CommitTxn() error { return p.Use(p.SyncProducer.CommitTxn) }

// AbortTxn drops the transaction, unless the producer is closed.
func (p *Producer) AbortTxn() error { return p.Use(p.SyncProducer.AbortTxn) }

// Close may be called twice.
func (p *Producer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return p.SyncProducer.Close()
}

// Transact publishes ms in one transaction.
func Transact(p sarama.SyncProducer, ms []*sarama.ProducerMessage) error {
	if err := p.BeginTxn(); err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	for part := range parts(ms) {
		if err := p.SendMessages(part); err != nil {
			return fmt.Errorf("publishing in a transaction: %w", SendError(err))
		}
	}
	if err := p.CommitTxn(); err != nil {
		return fmt.Errorf("committing a transaction: %w", err)
	}
	return nil
}

// parts splits ms, in order, into parts that fit into a batch: several messages, or one large one
// that compresses well. The producer itself would put more into a batch.
func parts(ms []*sarama.ProducerMessage) iter.Seq[[]*sarama.ProducerMessage] {
	return func(yield func([]*sarama.ProducerMessage) bool) {
		from, size := 0, 0
		for i, m := range ms {
			n := m.ByteSize(2)
			if i > from && size+n > MaxMessage {
				if !yield(ms[from:i]) {
					return
				}
				from, size = i, 0
			}
			size += n
		}
		yield(ms[from:])
	}
}

// murmur2 hashes as Kafka's Java client does.
var murmur2 = sarama.NewMurmur2Partitioner("")

// PartitionOf returns the partition of key in a topic with lanes partitions, which is at least 1,
// as the default partitioner of Kafka's Java client computes it. It is safe for concurrent use.
func PartitionOf(key string, lanes int) int {
	p, err := murmur2.Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder(key)}, int32(lanes))
	if err != nil {
		panic(fmt.Sprintf("kafka: partition of %q: %v", key, err)) // strings encode
	}
	return int(p)
}
