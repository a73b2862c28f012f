package kafka

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

func TestValidate(t *testing.T) {
	good := func(f func(*Config)) Config {
		c := Config{Brokers: []string{"kafka-1:9092"}, Topic: "alerts"}
		f(&c)
		return c
	}
	for _, tt := range []struct {
		c    Config
		want []string
	}{
		{good(func(*Config) {}), nil},
		{good(func(c *Config) { c.Topic, c.Key, c.MaxMessageBytes = "a.b_c-1", "client", 6<<20 }), nil},
		{Config{}, []string{"brokers: ", "topic: "}},
		{good(func(c *Config) { c.Brokers = []string{"kafka"} }), []string{"brokers[0]: "}},
		{good(func(c *Config) { c.Topic = "a b" }), []string{`topic: "a b"`}},
		{good(func(c *Config) { c.Topic = ".." }), []string{"topic: "}},
		{good(func(c *Config) { c.Topic = strings.Repeat("a", 250) }), []string{"topic: 250"}},
		{good(func(c *Config) { c.Key = "url" }), []string{`key: "url" is not known; write one of page, document, client, notification`}},
		{good(func(c *Config) { c.MaxMessageBytes = 1 }), []string{"max_message_bytes: 1 "}},
		{good(func(c *Config) { c.MaxMessageBytes = 1 << 30 }), []string{"max_message_bytes: "}},
		{good(func(c *Config) { c.TLS.CA = "ca.pem" }), []string{"tls.enable: "}},
		{good(func(c *Config) { c.SASL.User = "u" }), []string{"sasl.mechanism: ", "sasl.password: "}[:1]},
	} {
		s, err := New(tt.c)
		if (err == nil) != (len(tt.want) == 0) || (s == nil) != (err != nil) {
			t.Errorf("%+v: got %v, want %v", tt.c, err, tt.want)
			continue
		}
		if err == nil {
			continue
		}
		if _, ok := errors.AsType[*pipeline.FieldError](err); !ok {
			t.Errorf("%+v: %T is no FieldError", tt.c, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got %v without %q", tt.c, err, want)
			}
		}
	}
}

// realEnv names the brokers of a real Kafka for tests.
const realEnv = "VOKTER_KAFKA"

// testTimeout is how long tests wait for what must come.
const testTimeout = 30 * time.Second

func startFake(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// onBoth runs test on a fake cluster, and on a real one where there is one. The topic of the
// Config does not exist yet; it is deleted behind the test.
func onBoth(t *testing.T, test func(t *testing.T, c Config)) {
	topic := "test-sink-" + strings.ToLower(rand.Text())
	t.Run("kfake", func(t *testing.T) {
		test(t, Config{Brokers: startFake(t).ListenAddrs(), Topic: topic})
	})
	t.Run("kafka", func(t *testing.T) {
		brokers := os.Getenv(realEnv)
		if brokers == "" {
			t.Skipf("%s names no brokers", realEnv)
		}
		test(t, Config{Brokers: strings.Split(brokers, ","), Topic: topic})
	})
}

// makeTopic makes the topic of c with so many partitions.
func makeTopic(t testing.TB, c Config, partitions int32, settings map[string]string) {
	t.Helper()
	conf, err := c.clusterConfig().Producer()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sarama.NewClusterAdmin(c.Brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: make(map[string]*string)}
	for name, value := range settings {
		detail.ConfigEntries[name] = &value
	}
	if err := admin.CreateTopic(c.Topic, detail, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.DeleteTopic(c.Topic); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
		_ = admin.Close()
	})
	for { // a topic that was just made has no leaders yet
		all, err := admin.DescribeTopics([]string{c.Topic})
		if err != nil {
			t.Fatal(err)
		}
		ready := all[0].Err == sarama.ErrNoError && len(all[0].Partitions) == int(partitions)
		for _, p := range all[0].Partitions {
			ready = ready && p.Err == sarama.ErrNoError
		}
		if ready {
			return
		}
	}
}

func newTestSink(t testing.TB, c Config) *Sink {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// records returns the first n records of the topic of c, those of a partition in order.
func records(t *testing.T, c Config, n int) []*sarama.ConsumerMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	conf := sarama.NewConfig()
	conf.Consumer.MaxWaitTime = 10 * time.Millisecond // it holds the end up
	consumer, err := sarama.NewConsumer(c.Brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	partitions, err := consumer.Partitions(c.Topic)
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan *sarama.ConsumerMessage)
	for _, p := range partitions {
		pc, err := consumer.ConsumePartition(c.Topic, p, sarama.OffsetOldest)
		if err != nil {
			t.Fatal(err)
		}
		defer pc.Close()
		go func() {
			for m := range pc.Messages() {
				select {
				case all <- m:
				case <-ctx.Done():
				}
			}
		}()
	}
	var got []*sarama.ConsumerMessage
	for len(got) < n {
		select {
		case m := <-all:
			got = append(got, m)
		case <-ctx.Done():
			t.Fatalf("%d of %d records came", len(got), n)
		}
	}
	cancel()
	return got
}

func headersOf(m *sarama.ConsumerMessage) map[string]string {
	h := make(map[string]string)
	for _, x := range m.Headers {
		h[string(x.Key)] = string(x.Value)
	}
	return h
}

func sample(id string) pipeline.Notification {
	return pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://Example.com:443/a", ID: id, Type: pipeline.NotificationType,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC), Client: "shop", Version: 7, Title: "Argus <Panoptes>",
		Language: "en", Change: "PONMLKJIHGFEDCBA9876543210",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "argus", Text: "Argus' wakeful", Snippet: "In the 5th century and later, Argus' wakeful alertness ...", Offset: 40},
			{Event: pipeline.Removed, Keyword: "zeus", Text: "Zeus", Snippet: "... Zeus sent \"Hermes\" & others ...", Offset: 2},
		},
	}
}

// wantErr fails t unless err has the class and holds each text.
func wantErr(t *testing.T, err error, class failure.Class, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("delivered, want a failure")
	}
	if got, _ := failure.ClassOf(err); got != class {
		t.Errorf("class %d, want %d: %v", got, class, err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %q without %q", err, text)
		}
	}
}
