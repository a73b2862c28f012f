package kafka

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/memory"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/kafkatest"
)

// TestMain lets more tests run at once than there are processors: they mostly wait for brokers. Memory is
// collected as often as in the program, since benchmarks speak of that.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	memory.Pace()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // records in the lines of benchmarks cannot be read
	os.Exit(m.Run())
}

// testLanes is how many lanes most tests share among processes.
const testLanes = 8

// testTopics are the topics of most tests.
var testTopics = map[string]flow.Topic{"in": {Groups: []string{"g"}}, "asked": {Groups: []string{"g"}, Ephemeral: true}}

// onBoth runs test on a fake cluster, and on a real one where there is one.
func onBoth(t *testing.T, test func(t *testing.T, c Config)) {
	kafkatest.OnBoth(t, func(t *testing.T, brokers []string, prefix string) {
		test(t, Config{Brokers: brokers, Prefix: prefix, Lanes: 3}.withDefaults())
	})
}

func testConfig(brokers []string) Config {
	return Config{Brokers: brokers, Prefix: kafkatest.Prefix(), Lanes: 3}.withDefaults()
}

// startTransport starts a transport of c, with testTopics unless w has others.
func startTransport(ctx context.Context, c Config, w flow.Wiring) (*Transport, error) {
	tr, err := New(c)
	if err != nil {
		return nil, err
	}
	if w.Topics == nil {
		w.Topics = testTopics
	}
	if err := tr.Start(ctx, w); err != nil {
		return nil, errors.Join(err, tr.Close())
	}
	return tr, nil
}

// openTransport returns a transport that is closed behind the test.
func openTransport(t *testing.T, c Config) *Transport {
	t.Helper()
	return openTransportWith(t, c, flow.Wiring{})
}

// openTransportWith is openTransport with other topics or a directory for the copy of the state.
func openTransportWith(t *testing.T, c Config, w flow.Wiring) *Transport {
	t.Helper()
	tr, err := startTransport(t.Context(), c, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, tr) })
	return tr
}

// mustClose closes c, which must not fail.
func mustClose(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// publish publishes a message.
func publish(t *testing.T, tr *Transport, topic, key, id string) {
	t.Helper()
	if err := tr.Publish(context.Background(), flow.Message{ID: id, Topic: topic, Key: key, Type: "test.v1"}); err != nil {
		t.Fatalf("Publish: %v", err)
	}
}

// publishKeys publishes a message for each of n keys to the topic "in".
func publishKeys(t *testing.T, tr *Transport, n int) {
	t.Helper()
	for i := range n {
		key := fmt.Sprint("k", i)
		publish(t, tr, "in", key, key)
	}
}

// subscribe returns what group gets of topic.
func subscribe(t *testing.T, tr *Transport, group, topic string) <-chan *message.Message {
	t.Helper()
	ms, err := tr.Subscriber(group).Subscribe(context.Background(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// openSharing returns a transport that shares the lanes of prefix.
func openSharing(t *testing.T, brokers []string, prefix, dir string, topics map[string]flow.Topic) *Transport {
	t.Helper()
	c := Config{Brokers: brokers, Prefix: prefix, Lanes: testLanes, SessionTimeout: 6 * time.Second}
	return openTransportWith(t, c, flow.Wiring{Dir: dir, Topics: topics})
}
