package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/sources/kafka"
	"github.com/vokter/vokter/test/kafkatest"
)

func TestSource(t *testing.T) {
	kafkatest.OnBoth(t, func(t *testing.T, brokers []string, _ string) {
		pipelinetest.TestSource(t, func(t *testing.T) pipelinetest.Upstream { return newUpstream(t, brokers) })
	})
}

// newUpstream is a topic of two partitions, keyed by URL, as another program writes it. It is
// deleted behind the test.
func newUpstream(t *testing.T, brokers []string) pipelinetest.Upstream {
	topic := "test-pages-" + rand.Text()
	conf := sarama.NewConfig()
	conf.Version = sarama.V2_8_0_0
	conf.Producer.Return.Successes = true
	conf.Metadata.Retry.Max, conf.Producer.Retry.Max = 60, 60 // a busy broker knows a new topic only after a while
	admin, err := sarama.NewClusterAdmin(brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false); err != nil {
		t.Fatal(err)
	}
	producer, err := sarama.NewSyncProducer(brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.DeleteTopic(topic); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
		_, _ = producer.Close(), admin.Close()
	})
	return pipelinetest.Upstream{
		New: func(*testing.T) pipeline.Source { return kafka.New(kafka.Config{Brokers: brokers, Topic: topic}) },
		Send: func(t *testing.T, ps ...pipeline.Pushed) {
			for _, p := range ps {
				m := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(p.URL), Value: sarama.ByteEncoder(p.Body)}
				if p.URL != "" {
					m.Headers = []sarama.RecordHeader{
						{Key: []byte("ce_subject"), Value: []byte(p.URL)}, {Key: []byte("Content-Type"), Value: []byte(p.ContentType)},
					}
				}
				if _, _, err := producer.SendMessage(m); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
}

func TestPage(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	m := &sarama.ConsumerMessage{Topic: "t", Partition: 1, Offset: 7, Value: []byte("x"), Timestamp: at}
	for name, value := range map[string]string{"URL": "https://a.example/", "Content-Type": "text/html", "content-language": "de", "traceparent": "p"} {
		m.Headers = append(m.Headers, &sarama.RecordHeader{Key: []byte(name), Value: []byte(value)})
	}
	p := kafka.Page(m)
	if p.URL != "https://a.example/" || p.ContentType != "text/html" || p.ContentLanguage != "de" || !p.Time.Equal(at) ||
		p.Header[flow.HeaderTrace] != "p" || string(p.Body) != "x" || p.ID == "" {
		t.Errorf("got %+v", p)
	}
	other := *m
	other.Timestamp = at.Add(time.Second)
	if kafka.Page(&other).ID == p.ID {
		t.Error("a topic that was made again has the same IDs")
	}
	for name, value := range map[string]string{"ce_id": "9", "ce_time": "2026-11-20T10:00:00Z", "ce_subject": "https://b.example/"} {
		m.Headers = append(m.Headers, &sarama.RecordHeader{Key: []byte(name), Value: []byte(value)})
	}
	if p = kafka.Page(m); p.ID != "9" || p.URL != "https://b.example/" || p.Time.Day() != 20 {
		t.Errorf("got %+v", p)
	}
}

func TestWhatItNeeds(t *testing.T) {
	err := kafka.New(kafka.Config{Brokers: []string{"kafka"}}).Validate()
	if err == nil || !strings.Contains(err.Error(), "brokers[0]") || !strings.Contains(err.Error(), "topic") {
		t.Errorf("got %v, want what is wrong with brokers and topic", err)
	}
	if err := kafka.New(kafka.Config{Brokers: []string{"kafka:9092"}, Topic: "t"}).Validate(); err != nil {
		t.Errorf("got %v", err)
	}
}

// testTimeout is how long a test waits for what comes at once.
const testTimeout = 20 * time.Second

// TestEndsWhileConnecting has a broker that takes connections and never answers.
func TestEndsWhileConnecting(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connected := make(chan struct{})
	var hold sync.WaitGroup
	hold.Go(func() {
		for once := sync.OnceFunc(func() { close(connected) }); ; once() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		hold.Wait()
	})
	checkEndsAfter(t, []string{l.Addr().String()}, connected)
}

// TestEndsWhileBrokersAreSilent has a broker that stops answering a member of the group.
func TestEndsWhileBrokersAreSilent(t *testing.T) {
	c := kafkatest.Cluster(t, kfake.SeedTopics(2, "pages"))
	silent, release := make(chan struct{}), make(chan struct{})
	var first sync.Once // a busy machine may send another heartbeat
	c.ControlKey(int16(kmsg.Heartbeat), func(kmsg.Request) (kmsg.Response, error, bool) {
		first.Do(func() { close(silent) })
		<-release // nothing is answered meanwhile
		return nil, nil, false
	})
	t.Cleanup(func() { close(release) })
	checkEndsAfter(t, c.ListenAddrs(), silent)
}

// checkEndsAfter holds a source to it that it ends when its context is cancelled after a signal.
func checkEndsAfter(t *testing.T, brokers []string, signal <-chan struct{}) {
	t.Helper()
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		src := kafka.New(kafka.Config{Brokers: brokers, Topic: "pages"})
		ended <- src.Run(ctx, func(context.Context, pipeline.Pushed) error { return nil })
	}()
	select {
	case <-signal:
	case err := <-ended:
		t.Fatalf("Run returned %v", err)
	case <-time.After(testTimeout):
		t.Fatal("no broker was asked")
	}
	cancel(over)
	select {
	case err := <-ended:
		if !errors.Is(err, over) {
			t.Errorf("Run returned %v, want the cause of its context", err)
		}
	case <-time.After(testTimeout):
		t.Error("Run does not end with its context")
	}
}
