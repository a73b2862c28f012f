package client

import (
	"errors"
	"sync"

	"github.com/IBM/sarama"
)

// ErrClosed is what a closed Producer returns. Its transport is closed then, or not started.
var ErrClosed = errors.New("kafka: the transport is closed")

// Producer is a producer of Sarama that may be closed while others still use it: Sarama's own
// panics when a message comes after Close. Close waits for calls in flight.
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
