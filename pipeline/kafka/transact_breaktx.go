//go:build breaktx

package kafka

import (
	"time"

	"github.com/IBM/sarama"
)

// transact is broken on purpose, so that the crash campaign can prove that it would
// notice: state and positions are committed first, and the outputs only a while later.
func transact(p sarama.SyncProducer, stateTopic string, ms []*sarama.ProducerMessage) error {
	var state, out []*sarama.ProducerMessage
	for _, m := range ms {
		if m.Topic == stateTopic {
			state = append(state, m)
		} else {
			out = append(out, m)
		}
	}
	if err := transactOnce(p, state); err != nil {
		return err
	}
	time.Sleep(20 * time.Millisecond)
	return transactOnce(p, out)
}
