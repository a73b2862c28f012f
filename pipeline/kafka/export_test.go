package kafka

import (
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Restored is how many records of state were read.
func (t *Transport) Restored() uint64 { return t.counts.restored.Load() }

// Commits is how many transactions were committed.
func (t *Transport) Commits() uint64 { return t.counts.commits.Load() }

// StateRecord is a record that makes value what group keeps for key under name, as the owner
// of the key's lane writes it.
func StateRecord(prefix string, lanes int, group, key, name string, value []byte) *sarama.ProducerMessage {
	return record(prefix, lanes, key, changelog.Key(changelog.KindState, group, key, name), value)
}

// WakeRecord is a record that sets the wake that group has for key in topic.
func WakeRecord(prefix string, lanes int, group, topic, key string, at time.Time) *sarama.ProducerMessage {
	return StateRecord(prefix, lanes, engine.WakeGroup(group, topic), key, flow.WakeName, engine.Wake{At: at}.Value())
}

func record(prefix string, lanes int, key, as string, value []byte) *sarama.ProducerMessage {
	return produced(prefix, client.PartitionOf(key, lanes), nil, map[string][]byte{as: value})[0]
}

// GiveUpSoon makes t take a transaction for stuck when it does not end soon: while brokers answer only, or
// always.
func (t *Transport) GiveUpSoon(answering bool) {
	if answering {
		t.answeredFor = time.Millisecond
	} else {
		t.transactFor = time.Millisecond
	}
}

// PausesAfter returns after how many records of size bytes a source that nobody reads from pauses its
// partition. It tries at most limit.
func PausesAfter(size, limit int) int {
	r := new(pausing)
	s := &source{reader: r, signal: make(chan struct{}, 1)}
	for i := range limit {
		s.add(&sarama.ConsumerMessage{Offset: int64(i), Value: make([]byte, size)})
		if r.paused {
			return i + 1
		}
	}
	return limit
}

// pausing is a partition of which only Pause is used.
type pausing struct {
	sarama.PartitionConsumer
	paused bool
}

func (p *pausing) Pause() { p.paused = true }
