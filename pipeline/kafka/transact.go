package kafka

import "github.com/IBM/sarama"

// transact publishes ms, outputs and state, in one transaction of p.
func transact(p sarama.SyncProducer, _ string, ms []*sarama.ProducerMessage) error {
	return transactOnce(p, ms)
}
