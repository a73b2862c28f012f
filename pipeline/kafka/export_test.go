package kafka

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

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

// HangOnce makes the next transaction hang until release is closed, when all of it was written
// and before it is committed, which is noticed soon: while brokers answer only, or always. What
// becomes of it then goes to the channel that is returned. It is to be called before there is
// any.
func (t *Transport) HangOnce(release <-chan struct{}, answering bool) (late <-chan error) {
	if answering {
		t.answeredFor = time.Millisecond
	} else {
		t.transactFor = time.Millisecond
	}
	ended := make(chan error, 1)
	var hung atomic.Bool
	t.transact = func(p sarama.SyncProducer, stateTopic string, ms []*sarama.ProducerMessage) error {
		if !hung.CompareAndSwap(false, true) {
			return transact(p, stateTopic, ms)
		}
		held := p.(*client.Producer)
		err := held.Use(func() error { // it is not closed meanwhile, as none is that waits for brokers
			raw := held.SyncProducer
			if err := errors.Join(raw.BeginTxn(), raw.SendMessages(ms)); err != nil {
				return err
			}
			<-release
			return raw.CommitTxn()
		})
		ended <- err
		return err
	}
	return ended
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
