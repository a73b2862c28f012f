package kafka

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// BenchmarkDeliver writes notifications to one topic with the sink, and in turn with a bare
// producer of the same settings that is given finished bodies: one after the other, as
// delivery does for one receiver, and many at once.
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
			s := build(b, c)
			bare, err := sarama.NewSyncProducer(c.Brokers, s.conf)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = bare.Close() })
			for _, workers := range []int{1, 128} {
				b.Run(fmt.Sprintf("at_once=%d", workers), func(b *testing.B) { bench(b, s, bare, workers) })
			}
		})
	}
}

// bench writes a few records for each of so many workers, in turn with s and with bare.
func bench(b *testing.B, s *Sink, bare sarama.SyncProducer, workers int) {
	const each = 16
	finished, err := s.record(b.Context(), sample("N"))
	if err != nil {
		b.Fatal(err)
	}
	url := func(worker, i int) string { return fmt.Sprintf("https://example.com/%d/%d", worker, i) }
	round := func(write func(worker, i int) error) time.Duration {
		begin := time.Now()
		var wg sync.WaitGroup
		for worker := range workers {
			wg.Go(func() {
				for i := range each {
					if err := write(worker, i); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return time.Since(begin)
	}
	var ours, theirs []time.Duration
	for b.Loop() {
		ours = append(ours, round(func(worker, i int) error {
			n := sample("N")
			n.URL = url(worker, i)
			return s.Deliver(b.Context(), n)
		}))
		theirs = append(theirs, round(func(worker, i int) error {
			_, _, err := bare.SendMessage(&sarama.ProducerMessage{
				Topic: finished.Topic, Headers: finished.Headers, Value: finished.Value, Key: sarama.StringEncoder(url(worker, i)),
			})
			return err
		}))
	}
	b.ReportMetric(float64(median(ours))/float64(median(theirs)), "x/bare")
	b.ReportMetric(float64(workers*each)*float64(time.Second)/float64(median(ours)), "deliveries/s")
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}
