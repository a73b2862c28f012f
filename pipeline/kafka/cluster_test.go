package kafka

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
)

// realEnv names the brokers of a real Kafka for tests.
const realEnv = "VOKTER_KAFKA"

// startFake starts a fake cluster and returns its brokers.
func startFake(t *testing.T, opts ...kfake.Opt) []string {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

// onBoth runs test on a fake cluster, and on a real one where there is one. The Config has
// a prefix of its own; what is made under it is deleted behind the test.
func onBoth(t *testing.T, test func(t *testing.T, c Config)) {
	t.Run("kfake", func(t *testing.T) { test(t, testConfig(startFake(t))) })
	t.Run("kafka", func(t *testing.T) {
		brokers := os.Getenv(realEnv)
		if brokers == "" {
			t.Skipf("%s names no brokers", realEnv)
		}
		c := testConfig(strings.Split(brokers, ","))
		t.Cleanup(func() {
			admin := testAdmin(t, c)
			topics, err := admin.ListTopics()
			if err != nil {
				t.Errorf("cleaning up: %v", err)
			}
			for name := range topics {
				if strings.HasPrefix(name, c.Prefix) {
					if err := admin.DeleteTopic(name); err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
						t.Errorf("cleaning up: %v", err)
					}
				}
			}
		})
		test(t, c)
	})
}

func testConfig(brokers []string) Config {
	id := make([]byte, 6)
	_, _ = rand.Read(id)
	return Config{Brokers: brokers, Prefix: "test-" + hex.EncodeToString(id) + ".", Lanes: 3}.withDefaults()
}

// opened returns a transport that is closed behind the test.
func opened(t *testing.T, c Config) *Transport {
	t.Helper()
	tr, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

func testAdmin(t *testing.T, c Config) sarama.ClusterAdmin {
	t.Helper()
	client, err := connect(t.Context(), c, c.Logger, func(error) {})
	if t.Context().Err() != nil { // in a cleanup
		conf, cerr := c.sarama()
		if cerr != nil {
			t.Fatal(cerr)
		}
		client, err = sarama.NewClient(c.Brokers, conf)
	}
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	return admin
}

// logBuffer collects what is logged.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Writer(l), nil)) }

// mention fails t for each of wants that text does not hold.
func mention(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("got %q\nwithout %q", text, want)
		}
	}
}
