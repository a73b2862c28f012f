package kafka_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

const testLanes = 8

// brokers returns those of an in-process cluster.
func brokers(t testing.TB) []string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

// realBrokers returns those that VOKTER_KAFKA names.
func realBrokers(t *testing.T) []string {
	t.Helper()
	list := os.Getenv("VOKTER_KAFKA")
	if list == "" {
		t.Skip("VOKTER_KAFKA does not name the brokers of a Kafka cluster")
	}
	return strings.Split(list, ",")
}

func TestTransport(t *testing.T) {
	f := pipelinetest.Features{Lanes: testLanes, Unbounded: true, Shared: true}
	run := func(t *testing.T, brokers []string) {
		pipelinetest.TestTransport(t, f, func(t *testing.T) pipelinetest.Site {
			return &site{brokers: brokers, prefix: "test-" + rand.Text() + ".", dir: t.TempDir()}
		})
	}
	t.Run("kfake", func(t *testing.T) { run(t, brokers(t)) })
	t.Run("real", func(t *testing.T) { run(t, realBrokers(t)) })
}

// site opens transports on topics of its own.
type site struct {
	brokers     []string
	prefix, dir string
}

func (s *site) Open(t *testing.T, c pipelinetest.Config) flow.Transport {
	t.Helper()
	kc := kafka.Config{
		Brokers: s.brokers, Prefix: s.prefix, Lanes: testLanes, Replication: 1, Dir: s.dir, Now: c.Now, SessionTimeout: 6 * time.Second,
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if c.Topics != nil {
		kc.Topics = map[string]flow.Topic{}
	}
	for name, tp := range c.Topics {
		kc.Topics[name] = flow.Topic{Groups: tp.Groups, Feedback: tp.Feedback, Ephemeral: tp.Ephemeral}
	}
	tr, err := kafka.Open(context.Background(), kc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	<-tr.Gained()
	return tr
}

// testWriter writes log lines to the test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}
