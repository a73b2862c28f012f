package kafka

import "github.com/IBM/sarama"

// WithoutTransactions makes t publish what it commits with a plain producer, for benchmarks
// that show what transactions cost.
func (t *Transport) WithoutTransactions() {
	t.transact = func(_ sarama.SyncProducer, _ string, ms []*sarama.ProducerMessage) error {
		return t.plain.SendMessages(ms)
	}
}

// Restored is how many records of state were read.
func (t *Transport) Restored() uint64 { return t.counts.restored.Load() }

// Commits is how many transactions were committed.
func (t *Transport) Commits() uint64 { return t.counts.commits.Load() }
