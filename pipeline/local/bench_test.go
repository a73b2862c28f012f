package local_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/vokter/vokter/pipeline/local"
)

// hops is the number of handlers that a message passes.
const hops = 4

// inFlight is how many messages may be on their way at once.
const inFlight = 1024

// BenchmarkTransport sends messages of 1 KB through four empty handlers of a Watermill
// router: over Watermill's gochannel, and over the embedded transport in memory and on
// disk. Compare msg/s within one run.
func BenchmarkTransport(b *testing.B) {
	b.Run("gochannel", func(b *testing.B) {
		ch := gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: inFlight}, watermill.NopLogger{})
		benchmarkChain(b, ch, func(int) message.Subscriber { return ch })
	})
	transport := func(dir func(b *testing.B) string) func(b *testing.B) {
		return func(b *testing.B) {
			tr, err := local.Open(local.Config{Dir: dir(b)})
			if err != nil {
				b.Fatal(err)
			}
			defer tr.Close()
			benchmarkChain(b, tr.Publisher(), func(i int) message.Subscriber { return tr.Subscriber("g" + strconv.Itoa(i)) })
		}
	}
	b.Run("memory", transport(func(*testing.B) string { return "" }))
	b.Run("durable", transport(func(b *testing.B) string { return b.TempDir() }))
}

func benchmarkChain(b *testing.B, pub message.Publisher, sub func(hop int) message.Subscriber) {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 5 * time.Second}, watermill.NopLogger{})
	if err != nil {
		b.Fatal(err)
	}
	room := make(chan struct{}, inFlight)
	done := make(chan struct{}, inFlight)
	topic := func(i int) string { return "hop" + strconv.Itoa(i) }
	open := openPublisher{pub}
	for i := range hops - 1 {
		router.AddHandler("h"+strconv.Itoa(i), topic(i), sub(i), topic(i+1), open,
			func(m *message.Message) ([]*message.Message, error) {
				return message.Messages{m.CopyWithContext()}, nil
			})
	}
	router.AddConsumerHandler("last", topic(hops-1), sub(hops-1), func(*message.Message) error {
		<-room
		done <- struct{}{}
		return nil
	})
	ctx, cancel := context.WithCancel(b.Context())
	ran := make(chan error, 1)
	go func() { ran <- router.Run(ctx) }()
	<-router.Running()
	payload := make([]byte, 1024)
	b.ReportAllocs()
	b.ResetTimer()
	const publishers = 16
	for p := range publishers {
		go func() {
			for i := p; i < b.N; i += publishers {
				room <- struct{}{}
				if err := pub.Publish(topic(0), message.NewMessage(strconv.Itoa(i), payload)); err != nil {
					b.Error(err)
				}
			}
		}()
	}
	for range b.N {
		<-done
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	b.StopTimer()
	cancel()
	if err := <-ran; err != nil {
		b.Error(err)
	}
}

// openPublisher keeps the router from closing a publisher that its handlers share.
type openPublisher struct{ message.Publisher }

func (openPublisher) Close() error { return nil }
