//go:build breaktx

package kafka

import (
	"time"

	"github.com/IBM/sarama"
)

// transact is broken on purpose, so that the crash campaign can prove that it would
// notice: state and positions are committed first, and the outputs only a while later.
func (n *tenure) transact(ms []*sarama.ProducerMessage) error {
	var state, out []*sarama.ProducerMessage
	for _, m := range ms {
		if m.Topic == n.t.cfg.Prefix+topicState {
			state = append(state, m)
		} else {
			out = append(out, m)
		}
	}
	if err := transactOnce(n.txns, state); err != nil {
		return err
	}
	time.Sleep(20 * time.Millisecond)
	return transactOnce(n.txns, out)
}
