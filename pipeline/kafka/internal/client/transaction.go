package client

import (
	"fmt"
	"iter"

	"github.com/IBM/sarama"
)

// MaxMessage is how many bytes the brokers take at once: the texts of two versions, packed
// together, with what goes with them.
const MaxMessage = 6 << 20

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

// parts splits ms into what the brokers take at once, in order: a few messages, or one that
// is large and packs well. The producer would put more together.
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
