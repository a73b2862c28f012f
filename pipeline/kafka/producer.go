package kafka

import (
	"sync"

	"github.com/IBM/sarama"
)

// producer is one of sarama's that may be closed while others still use it: theirs panics
// where a message comes to one that was closed. Close waits for what is under way.
type producer struct {
	sarama.SyncProducer
	mu     sync.RWMutex // held for reading while it is used
	closed bool
}

// newProducer returns a producer with the configuration c.
func newProducer(brokers []string, c *sarama.Config) (sarama.SyncProducer, error) {
	p, err := sarama.NewSyncProducer(brokers, c)
	if err != nil {
		return nil, err
	}
	return &producer{SyncProducer: p}, nil
}

func (p *producer) use(f func() error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return ErrClosed
	}
	return f()
}

func (p *producer) SendMessage(m *sarama.ProducerMessage) (partition int32, offset int64, err error) {
	err = p.use(func() (err error) {
		partition, offset, err = p.SyncProducer.SendMessage(m)
		return err
	})
	return partition, offset, err
}

func (p *producer) SendMessages(ms []*sarama.ProducerMessage) error {
	return p.use(func() error { return p.SyncProducer.SendMessages(ms) })
}

func (p *producer) BeginTxn() error  { return p.use(p.SyncProducer.BeginTxn) }
func (p *producer) CommitTxn() error { return p.use(p.SyncProducer.CommitTxn) }
func (p *producer) AbortTxn() error  { return p.use(p.SyncProducer.AbortTxn) }

// Close may be called twice.
func (p *producer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return p.SyncProducer.Close()
}
