package client

import (
	"errors"
	"fmt"
	"sync"

	"github.com/IBM/sarama"
)

// ErrClosed is returned by a closed Producer. Its transport is closed, or was not started.
var ErrClosed = errors.New("kafka: the transport is closed")

// MaxMessage is the maximum size in bytes of a batch of records after compression. It has room for
// the texts of two versions.
const MaxMessage = 6 << 20

// Producer is a producer of Sarama that can be closed while others still use it: Sarama panics if a
// message is sent after Close.
type Producer struct {
	syncProducer sarama.SyncProducer
	mu           sync.RWMutex // held for reading while syncProducer is used
	closed       bool
}

// NewProducer returns a producer with the configuration c.
func NewProducer(brokers []string, c *sarama.Config) (*Producer, error) {
	p, err := sarama.NewSyncProducer(brokers, c)
	if err != nil {
		return nil, err
	}
	return &Producer{syncProducer: p}, nil
}

// whileOpen calls f, unless p is closed.
func (p *Producer) whileOpen(f func() error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return ErrClosed
	}
	return f()
}

// Send publishes ms.
func (p *Producer) Send(ms []*sarama.ProducerMessage) error {
	return p.whileOpen(func() error { return p.syncProducer.SendMessages(ms) })
}

// Transact publishes ms in one transaction.
func (p *Producer) Transact(ms []*sarama.ProducerMessage) error {
	if err := p.whileOpen(p.syncProducer.BeginTxn); err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	for _, part := range splitBatches(ms) {
		if err := p.Send(part); err != nil {
			return fmt.Errorf("publishing in a transaction: %w", SendError(err))
		}
	}
	if err := p.whileOpen(p.syncProducer.CommitTxn); err != nil {
		return fmt.Errorf("committing a transaction: %w", err)
	}
	return nil
}

// Failed reports whether p can write no more, for example because another producer has its ID.
func (p *Producer) Failed() bool {
	return p.syncProducer.TxnStatus()&sarama.ProducerTxnFlagFatalError != 0
}

// Close closes p once nobody uses it. It may be called twice.
func (p *Producer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return p.syncProducer.Close()
}

// splitBatches splits ms, in order, into parts that fit into a batch: several messages, or one large one
// that compresses well. The producer itself would put more into a batch.
func splitBatches(ms []*sarama.ProducerMessage) (all [][]*sarama.ProducerMessage) {
	from, size := 0, 0
	for i, m := range ms {
		n := m.ByteSize(2)
		if i > from && size+n > MaxMessage {
			all = append(all, ms[from:i])
			from, size = i, 0
		}
		size += n
	}
	return append(all, ms[from:])
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
