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
		r, got := new(fakePartition), 0
		for s := (&source{reader: r, signal: make(chan struct{}, 1)}); !r.paused && got < 10_000; got++ {
			s.addRecord(&sarama.ConsumerMessage{Offset: int64(got), Value: make([]byte, c.size)})
		}
		if got < c.least || got > c.most {
			t.Errorf("%s: paused after %d records of %d bytes, want %d to %d", name, got, c.size, c.least, c.most)
		}
	}
}

// fakePartition is a partition of which only Pause is used.
type fakePartition struct {
	sarama.PartitionConsumer
	paused bool
}

func (p *fakePartition) Pause() { p.paused = true }
