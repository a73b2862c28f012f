package kafka

import (
	"github.com/IBM/sarama"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// transact publishes ms, outputs and state, in one transaction of p.
func transact(p sarama.SyncProducer, _ string, ms []*sarama.ProducerMessage) error {
	return client.Transact(p, ms)
}
