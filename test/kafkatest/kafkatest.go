// Package kafkatest runs tests on a fake Kafka, and on a real one where there is one.
package kafkatest

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vokter/vokter/pipeline"
)

// RealEnv names the environment variable that lists the brokers of a real Kafka, with commas.
const RealEnv = "VOKTER_KAFKA"

// Cluster starts a fake cluster of one broker, which ends with the test.
func Cluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Start is Cluster for tests that need only its brokers.
func Start(t testing.TB, opts ...kfake.Opt) []string {
	t.Helper()
	return Cluster(t, opts...).ListenAddrs()
}

// Prefix returns a prefix for topics that no other test has.
func Prefix() string {
	id := make([]byte, 6)
	_, _ = rand.Read(id)
	return "test-" + hex.EncodeToString(id) + "."
}

// OnBoth runs test on a fake cluster, and on the real one. The topics whose names begin with
// prefix are deleted from the real one after the test.
func OnBoth(t *testing.T, test func(t *testing.T, brokers []string, prefix string)) {
	t.Run("kfake", func(t *testing.T) { test(t, Start(t), Prefix()) })
	t.Run("kafka", func(t *testing.T) {
		list := os.Getenv(RealEnv)
		if list == "" {
			t.Skipf("%s names no brokers", RealEnv)
		}
		brokers, prefix := strings.Split(list, ","), Prefix()
		t.Cleanup(func() { DeleteTopics(t, brokers, prefix) })
		test(t, brokers, prefix)
	})
}

// DeleteTopics deletes the topics whose names begin with prefix.
func DeleteTopics(t testing.TB, brokers []string, prefix string) {
	t.Helper()
	admin := Admin(t, brokers)
	topics, err := admin.ListTopics()
	if err != nil {
		t.Errorf("cleaning up: %v", err)
	}
	for name := range topics {
		if strings.HasPrefix(name, prefix) {
			if err := admin.DeleteTopic(name); err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
				t.Errorf("cleaning up: %v", err)
			}
		}
	}
}

// Config returns the configuration of a client that reads what is committed, and publishes to all replicas.
func Config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version, c.Consumer.IsolationLevel = sarama.V2_8_0_0, sarama.ReadCommitted
	c.Producer.RequiredAcks, c.Producer.Return.Successes = sarama.WaitForAll, true
	return c
}

// Admin returns an admin of the cluster, which is closed after the test.
func Admin(t testing.TB, brokers []string) sarama.ClusterAdmin {
	t.Helper()
	admin, err := sarama.NewClusterAdmin(brokers, Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	return admin
}

// Log collects what is logged. It is safe for concurrent use.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns all lines.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Logger returns a logger that writes to l.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Mention fails t for each of wants that text does not contain.
func Mention(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("got %q\nwithout %q", text, want)
		}
	}
}

// Refused fails t unless there is an error that contains each of wants.
func Refused(t *testing.T, err error, wants ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("got no error")
	}
	Mention(t, err.Error(), wants...)
}

// Mistake fails t unless err is one mistake in field that contains want. An empty field means that there is none.
func Mistake(t *testing.T, err error, field, want string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		return
	}
	mistake, ok := errors.AsType[*pipeline.FieldError](err)
	if !ok || mistake.Field != field || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v, want one mistake in %s", err, field)
	}
	Mention(t, err.Error(), want)
}

// Silent returns the address of a broker that takes a connection, calls connected and says
// nothing until the test ends.
func Silent(t testing.TB, connected func()) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		connected()
		<-t.Context().Done()
	}()
	return l.Addr().String()
}
