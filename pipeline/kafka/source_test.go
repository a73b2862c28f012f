package kafka

import (
	"testing"

	"github.com/IBM/sarama"
)

// Many small messages, such as requests for the pages of one host, are read without a pause, since a
// pause lasts up to 100 ms.
func TestReadingAhead(t *testing.T) {
	for name, c := range map[string]struct{ size, least, most int }{
		"small":  {1 << 10, 500, 1000},
		"usual":  {10 << 10, 150, 250},
		"large":  {1 << 20, 1, 4},
		"larger": {5 << 20, 1, 1},
	} {
		if got := pausesAfter(c.size, 10_000); got < c.least || got > c.most {
			t.Errorf("%s: paused after %d records of %d bytes, want %d to %d", name, got, c.size, c.least, c.most)
		}
	}
}

// pausesAfter returns after how many records of size bytes a source that nobody reads from pauses its
// partition. It tries at most limit.
func pausesAfter(size, limit int) int {
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
