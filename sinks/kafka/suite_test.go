package kafka

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/test/beside"
)

func TestConformance(t *testing.T) {
	t.Run("kfake", func(t *testing.T) {
		pipelinetest.TestSink(t, func(t *testing.T) pipelinetest.SinkFake {
			cluster := startFake(t)
			c := Config{Brokers: cluster.ListenAddrs(), Topic: "t"}
			f, s := newFake(t, c)
			f.Hold = func() (<-chan struct{}, func()) { return holdProduce(cluster) }
			f.Faults = map[string]pipelinetest.SinkFault{
				"not allowed": {Arrange: func() { onProduce(cluster, func() *kerr.Error { return kerr.TopicAuthorizationFailed }) }},
				"too large":   {Arrange: func() { onProduce(cluster, func() *kerr.Error { return kerr.MessageTooLarge }) }, Class: failure.ClassRefused},
				"too few replicas": {Arrange: func() {
					s.producerConfig.Producer.Retry.Max = 1
					onProduce(cluster, func() *kerr.Error { return kerr.NotEnoughReplicas })
				}},
				"broken connections": {Arrange: func() {
					s.producerConfig.Producer.Retry.Max = 1
					breakConnections(cluster)
				}, Ambiguous: true},
			}
			return f
		})
	})
	t.Run("kafka", func(t *testing.T) {
		brokers := os.Getenv(realEnv)
		if brokers == "" {
			t.Skipf("%s names no brokers", realEnv)
		}
		pipelinetest.TestSink(t, func(t *testing.T) pipelinetest.SinkFake {
			f, _ := newFake(t, Config{Brokers: strings.Split(brokers, ","), Topic: "test-sink-" + strings.ToLower(rand.Text())})
			return f
		})
	})
}

// newFake makes a sink that writes to the topic of c, which is made and has one partition.
func newFake(t *testing.T, c Config) (pipelinetest.SinkFake, *Sink) {
	c.MaxMessageBytes = 4 << 20
	makeTopic(t, c, 1, map[string]string{"max.message.bytes": "4194304"})
	client, err := sarama.NewClient(c.Brokers, sarama.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s := newTestSink(t, c)
	return pipelinetest.SinkFake{Sink: s, Got: func() []pipelinetest.Arrived {
		end, err := client.GetOffset(c.Topic, 0, sarama.OffsetNewest)
		if err != nil {
			t.Fatal(err)
		}
		var all []pipelinetest.Arrived
		for _, m := range records(t, c, int(end)) {
			var n pipeline.Notification
			if err := json.Unmarshal(m.Value, &n); err != nil {
				t.Fatal(err)
			}
			checkCloudEvent(t, m, n)
			a := pipelinetest.Arrived{ID: headersOf(m)["ce_id"]}
			for _, d := range n.Diffs {
				a.Texts = append(a.Texts, d.Text)
			}
			all = append(all, a)
		}
		return all
	}}, s
}

// breakConnections makes each attempt to write end the connection.
func breakConnections(cluster *kfake.Cluster) {
	cluster.ControlKey(produceKey, func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return nil, errors.New("the connection breaks"), true
	})
}

// holdProduce holds the next attempt to write up, and the cluster with it.
func holdProduce(cluster *kfake.Cluster) (began <-chan struct{}, release func()) {
	begin, end := make(chan struct{}), make(chan struct{})
	asked := sync.OnceFunc(func() { close(begin) })
	cluster.ControlKey(produceKey, func(kmsg.Request) (kmsg.Response, error, bool) {
		asked()
		cluster.SleepControl(func() { <-end })
		return nil, nil, false
	})
	return begin, sync.OnceFunc(func() { close(end) })
}

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
			s := newTestSink(b, c)
			bare, err := sarama.NewSyncProducer(c.Brokers, s.producerConfig)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = bare.Close() })
			for _, workers := range []int{1, 128} {
				b.Run(fmt.Sprintf("at_once=%d", workers), func(b *testing.B) { benchmarkSink(b, s, bare, workers) })
			}
		})
	}
}

// benchmarkSink writes a few records for each of so many workers, in turn with s and with bare.
func benchmarkSink(b *testing.B, s *Sink, bare sarama.SyncProducer, workers int) {
	const each = 16
	m, err := s.newMessage(b.Context(), sample("N"))
	if err != nil {
		b.Fatal(err)
	}
	finished := recordOf(s.cfg.Topic, m)
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
