package kafka

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	watermillkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/kafkatest"
)

// benchBody is the size of what is consumed, written and published for each message.
const benchBody = 8 << 10

// benchBrokers are real ones where VOKTER_KAFKA names them.
func benchBrokers(b *testing.B) []string {
	if list := os.Getenv(kafkatest.RealEnv); strings.Contains(list, ":") {
		return strings.Split(list, ",")
	}
	return kafkatest.Start(b)
}

// BenchmarkHandler consumes and publishes one for one over 8 partitions: with Watermill's
// own subscriber and publisher, which keep no state, and with a Transport whose handler
// writes as much state.
func BenchmarkHandler(b *testing.B) {
	bs := benchBrokers(b)
	b.Run("watermill-kafka", func(b *testing.B) { benchWatermill(b, bs) })
	b.Run("transport", func(b *testing.B) { benchTransport(b, bs) })
}

func openBench(b *testing.B, bs []string, prefix, dir string) *Transport {
	b.Helper()
	tr, err := startTransport(context.Background(), Config{
		Brokers: bs, Prefix: prefix, Lanes: testLanes, Replication: 1,
	}, flow.Wiring{Dir: dir, Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}}})
	if err != nil {
		b.Fatal(err)
	}
	<-tr.Gained()
	return tr
}

// publishMessages publishes n messages of as many keys.
func publishMessages(b *testing.B, tr *Transport, n int) {
	b.Helper()
	body := make([]byte, benchBody)
	_, _ = rand.Read(body)
	for from := 0; from < n; from += 100 {
		var ms []flow.Message
		for i := from; i < min(from+100, n); i++ {
			ms = append(ms, flow.Message{ID: fmt.Sprint(i), Topic: "in", Key: fmt.Sprint("k", i), Type: "test.v1", Body: body})
		}
		if err := tr.Publish(context.Background(), ms...); err != nil {
			b.Fatal(err)
		}
	}
}

func benchTransport(b *testing.B, bs []string) {
	tr := openBench(b, bs, benchPrefix(b, bs), b.TempDir())
	defer tr.Close()
	publishMessages(b, tr, b.N)
	handled := newCounter()
	ms, err := tr.Subscriber("g").Subscribe(context.Background(), "in")
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	go func() {
		for m := range ms {
			go func() {
				tx, _ := flow.TxFrom(m.Context())
				key := m.Metadata[flow.HeaderKey]
				if err := tx.State(key).Set("body", m.Payload); err != nil {
					m.Nack()
					return
				}
				tx.Emit(flow.Message{ID: m.UUID, Topic: "out", Key: key, Type: "test.v1", Body: m.Payload})
				tx.OnCommit(handled.add)
				m.Ack()
			}()
		}
	}()
	handled.waitFor(int64(b.N))
	b.StopTimer()
	reportRate(b, b.N, "messages", 0)
	b.ReportMetric(float64(b.N)/float64(max(tr.counters.commits.Load(), 1)), "messages/transaction")
}

func benchWatermill(b *testing.B, bs []string) {
	prefix := benchPrefix(b, bs)
	tr := openBench(b, bs, prefix, "")
	publishMessages(b, tr, b.N+1)
	if err := tr.Close(); err != nil {
		b.Fatal(err)
	}
	handled := newCounter()
	bareHandler(b, bs, prefix, handled.add)
	handled.waitFor(1) // the group has met
	b.ResetTimer()
	handled.waitFor(int64(b.N + 1))
	b.StopTimer()
	reportRate(b, b.N, "messages", 0)
}

// bareHandler consumes prefix's topic "in" with Watermill's own subscriber, publishes each message to
// "out" with its publisher, and calls handled.
func bareHandler(b *testing.B, bs []string, prefix string, handled func()) {
	b.Helper()
	c := kafkatest.Config()
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	pub, err := watermillkafka.NewPublisher(watermillkafka.PublisherConfig{
		Brokers: bs, Marshaler: watermillkafka.DefaultMarshaler{}, OverwriteSaramaConfig: c,
	}, watermill.NopLogger{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = pub.Close() })
	sub, err := watermillkafka.NewSubscriber(watermillkafka.SubscriberConfig{
		Brokers: bs, ConsumerGroup: prefix + "bare", OverwriteSaramaConfig: c,
	}, watermill.NopLogger{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = sub.Close() })
	ms, err := sub.Subscribe(context.Background(), prefix+"in")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for m := range ms {
			go func() {
				if err := pub.Publish(prefix+"out", message.NewMessage(m.UUID, m.Payload)); err != nil {
					m.Nack()
					return
				}
				m.Ack()
				handled()
			}()
		}
	}()
}

// benchPrefix begins the names of topics of b alone, which are deleted behind it.
func benchPrefix(b *testing.B, bs []string) string {
	b.Helper()
	prefix := "bench-" + rand.Text() + "."
	b.Cleanup(func() {
		kafkatest.DeleteTopics(b, bs, prefix)
		// The group of a Transport; the bare handler's ends with its last member.
		_ = kafkatest.Admin(b, bs).DeleteConsumerGroup(strings.TrimSuffix(prefix, "."))
	})
	return prefix
}

// reportRate reports how many of n came to pass in a second, and how many times base that is, if
// base was measured.
func reportRate(b *testing.B, n int, unit string, base float64) float64 {
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
	grown chan struct{} // holds a token when n grew
}

func newCounter() *counter { return &counter{grown: make(chan struct{}, 1)} }

func (c *counter) add() {
	c.n.Add(1)
	engine.Notify(c.grown)
}

// waitFor returns once n was counted.
func (c *counter) waitFor(n int64) {
	for c.n.Load() < n {
		<-c.grown
	}
}

// countRecords counts the records that programs of others see in topic: read committed.
func countRecords(b *testing.B, bs []string, topic string) *counter {
	b.Helper()
	counted := newCounter()
	consumeRecords(b, bs, topic, func(*sarama.ConsumerMessage) { counted.add() })
	return counted
}
