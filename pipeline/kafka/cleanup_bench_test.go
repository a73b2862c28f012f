package kafka_test

import (
	"context"
	"crypto/rand"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"
)

// benchPrefix begins the names of topics of b alone, which are deleted behind it.
func benchPrefix(b *testing.B, bs []string) string {
	b.Helper()
	prefix := "bench-" + rand.Text() + "."
	b.Cleanup(func() {
		admin, err := sarama.NewClusterAdmin(bs, sarama.NewConfig())
		if err != nil {
			b.Errorf("deleting what was made: %v", err)
			return
		}
		defer admin.Close()
		topics, err := admin.ListTopics()
		if err != nil {
			b.Errorf("deleting what was made: %v", err)
		}
		for name := range topics {
			if strings.HasPrefix(name, prefix) {
				if err := admin.DeleteTopic(name); err != nil {
					b.Errorf("deleting %s: %v", name, err)
				}
			}
		}
		// The group of a Transport; the bare handler's ends with its last member.
		_ = admin.DeleteConsumerGroup(strings.TrimSuffix(prefix, "."))
	})
	return prefix
}

// rate reports how many of n came to pass in a second, and how many times base that is, if
// base was measured.
func rate(b *testing.B, n int, unit string, base float64) float64 {
	r := float64(n) / b.Elapsed().Seconds()
	b.ReportMetric(r, unit+"/s")
	if base > 0 {
		b.ReportMetric(r/base, "x-bare")
	}
	return r
}

// counter counts what is waited for.
type counter struct {
	n     atomic.Int64
	moved chan struct{} // holds a token when n grew
}

func newCounter() *counter { return &counter{moved: make(chan struct{}, 1)} }

func (c *counter) add() {
	c.n.Add(1)
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// reach returns once n was counted.
func (c *counter) reach(n int64) {
	for c.n.Load() < n {
		<-c.moved
	}
}

// counting counts the records that programs of others see in topic: read committed.
func counting(b *testing.B, bs []string, topic string) *counter {
	b.Helper()
	c := sarama.NewConfig()
	c.Version = sarama.V2_8_0_0
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	consumer, err := sarama.NewConsumer(bs, c)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(func() {
		cancel()
		if err := consumer.Close(); err != nil {
			b.Error(err)
		}
	})
	counted := newCounter()
	for lane := range int32(testLanes) {
		pc, err := consumer.ConsumePartition(topic, lane, sarama.OffsetOldest)
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			defer pc.AsyncClose()
			for {
				select {
				case <-pc.Messages():
					counted.add()
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return counted
}
