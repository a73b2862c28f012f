//go:build !breaktx

package kafka

import "github.com/IBM/sarama"

// transact publishes ms, outputs and state, in one transaction.
func (n *tenure) transact(ms []*sarama.ProducerMessage) error { return transactOnce(n.txns, ms) }
