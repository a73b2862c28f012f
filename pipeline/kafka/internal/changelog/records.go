package changelog

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/IBM/sarama"
)

// HeaderMarker is in records that say only that all records before them were written earlier:
// its value names the writer. No consumer group gets them.
const HeaderMarker = "vokter_marker"

// Messages returns what the brokers get of state, by the keys of its records, in an order that
// does not change. A nil value deletes.
func Messages(topic string, lane int, state map[string][]byte) []*sarama.ProducerMessage {
	ms := make([]*sarama.ProducerMessage, 0, len(state))
	for _, key := range slices.Sorted(maps.Keys(state)) {
		m := &sarama.ProducerMessage{Topic: topic, Partition: int32(lane), Key: sarama.StringEncoder(key)}
		if v := state[key]; v != nil {
			m.Value = sarama.ByteEncoder(v)
		}
		ms = append(ms, m)
	}
	return ms
}

// Read hands the records of pc to add until add is done or fails, or ctx is done, whose cause it
// then returns.
func Read(ctx context.Context, pc sarama.PartitionConsumer, add func(*sarama.ConsumerMessage) (done bool, err error)) error {
	for {
		select {
		case m, ok := <-pc.Messages():
			if !ok {
				return errors.New("the records of the state topic ended early")
			}
			if done, err := add(m); err != nil || done {
				return err
			}
		case err := <-pc.Errors():
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// IsFence reports whether m is the fence that was written with nonce.
func IsFence(m *sarama.ConsumerMessage, nonce string) bool {
	return string(m.Key) == Key(KindFence) && string(m.Value) == nonce
}
