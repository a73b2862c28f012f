package kafka

import (
	"maps"
	"time"

	"github.com/IBM/sarama"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
)

// How much becomes one transaction.
const (
	// linger is how long a transaction waits for more messages: a transaction for each would
	// halve what a lane can do.
	linger = 5 * time.Millisecond
	// fullMessages and fullBytes end the wait.
	fullMessages = 20
	fullBytes    = 4 << 20
	// crowdedBytes is how much waits behind a transaction at most.
	crowdedBytes = 4 * fullBytes
	// lazyFor is how long what need not be durable at once waits for a transaction.
	lazyFor = 5 * time.Second
)

// consumer is a consumer group's share in a topic.
type consumer struct{ group, topic string }

// wakeOf names a wake.
type wakeOf struct {
	consumer
	key string
}

// batch is what becomes one transaction of a lane.
type batch struct {
	layer     layer
	out       []output
	wakes     map[wakeOf]wake
	positions map[consumer]int64
	own       map[string][]byte // records of the transport itself, by key
	onCommit  []func()
	// urgent says that it is to be committed soon, since somebody waits for it.
	urgent   bool
	messages int
	bytes    int
	began    time.Time
	sent     time.Time // when its transaction began
	// landed is closed when b is committed and all of onCommit has run.
	landed chan struct{}
}

func newBatch() *batch {
	return &batch{landed: make(chan struct{}), wakes: make(map[wakeOf]wake), positions: make(map[consumer]int64), own: make(map[string][]byte)}
}

// empty reports whether b changes nothing.
func (b *batch) empty() bool {
	return len(b.layer.states)+len(b.out)+len(b.wakes)+len(b.positions)+len(b.own) == 0
}

// full reports whether b should not wait for more.
func (b *batch) full() bool {
	return b.messages >= fullMessages && b.urgent || b.bytes+b.layer.bytes >= fullBytes
}

// records are the state of b, by the key of each record; a nil value deletes.
func (b *batch) records() map[string][]byte {
	rs := make(map[string][]byte, len(b.positions)+len(b.wakes)+len(b.own))
	maps.Copy(rs, b.own)
	for p, names := range b.layer.states {
		for name, value := range names {
			rs[changelog.Key(changelog.KindState, p.group, p.key, name)] = value
		}
	}
	for w, at := range b.wakes {
		var v []byte
		if !at.at.IsZero() {
			v = changelog.EncodeWake(at.at, at.atStart)
		}
		rs[changelog.Key(changelog.KindWake, w.group, w.topic, w.key)] = v
	}
	for c, offset := range b.positions {
		rs[changelog.Key(changelog.KindPosition, c.group, c.topic)] = changelog.EncodeOffset(offset)
	}
	return rs
}

// produced returns what the brokers get: outputs first, and the state in an order that
// does not change.
func produced(prefix string, lane int, out []output, state map[string][]byte) []*sarama.ProducerMessage {
	ms := make([]*sarama.ProducerMessage, 0, len(out)+len(state))
	for _, o := range out {
		ms = append(ms, o.record(prefix))
	}
	return append(ms, changelog.Messages(prefix+admin.TopicState, lane, state)...)
}
