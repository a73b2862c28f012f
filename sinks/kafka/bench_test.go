package kafka

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/test/beside"
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
	round := func(write func(worker, i int) error) error {
		errs := make([]error, workers)
		var wg sync.WaitGroup
		for worker := range workers {
			wg.Go(func() {
				for i := range each {
					errs[worker] = errors.Join(errs[worker], write(worker, i))
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	beside.Run(b, workers*each, func() error {
		return round(func(worker, i int) error {
			n := sample("N")
			n.URL = url(worker, i)
			return s.Deliver(b.Context(), n)
		})
	}, func() error {
		return round(func(worker, i int) error {
			_, _, err := bare.SendMessage(&sarama.ProducerMessage{
				Topic: finished.Topic, Headers: finished.Headers, Value: finished.Value, Key: sarama.StringEncoder(url(worker, i)),
			})
			return err
		})
	})
}
