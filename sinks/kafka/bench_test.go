package kafka

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/IBM/sarama"
)

// parallel is how many deliveries are under way at once for each CPU.
const parallel = 64

// BenchmarkDeliver writes notifications to one topic: with the sink, and with a bare producer
// of the same settings that is given finished bodies.
func BenchmarkDeliver(b *testing.B) {
	for name, brokers := range map[string]func() []string{
		"kfake": func() []string { return startFake(b).ListenAddrs() },
		"kafka": func() []string {
			if list := os.Getenv(realEnv); list != "" {
				return strings.Split(list, ",")
			}
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			c := Config{Brokers: brokers(), Topic: "test-sink-bench"}
			if c.Brokers == nil {
				b.Skipf("%s names no brokers", realEnv)
			}
			makeTopic(b, c, 4, nil)
			b.Run("sink", func(b *testing.B) { benchSink(b, c) })
			b.Run("bare", func(b *testing.B) { benchBare(b, c) })
		})
	}
}

func benchSink(b *testing.B, c Config) {
	s := build(b, c)
	if err := s.Deliver(b.Context(), sample("warm")); err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(parallel)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			n := sample("N")
			n.URL = fmt.Sprintf("https://example.com/%d", i)
			if err := s.Deliver(b.Context(), n); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}

func benchBare(b *testing.B, c Config) {
	s := build(b, c)
	m, err := s.record(b.Context(), sample("N"))
	if err != nil {
		b.Fatal(err)
	}
	p, err := sarama.NewSyncProducer(c.Brokers, s.conf)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	b.SetParallelism(parallel)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			_, _, err := p.SendMessage(&sarama.ProducerMessage{
				Topic: m.Topic, Headers: m.Headers, Value: m.Value, Key: sarama.StringEncoder(fmt.Sprintf("https://example.com/%d", i)),
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}
