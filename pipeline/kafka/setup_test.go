package kafka

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/IBM/sarama"

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
	os.Exit(m.Run())
}

// testLanes is how many lanes most tests share among processes.
const testLanes = 8

// onBoth runs test on a fake cluster, and on a real one where there is one.
func onBoth(t *testing.T, test func(t *testing.T, c Config)) {
	kafkatest.OnBoth(t, func(t *testing.T, brokers []string, prefix string) {
		test(t, Config{Brokers: brokers, Prefix: prefix, Lanes: 3}.withDefaults())
	})
}

func testConfig(brokers []string) Config {
	return Config{Brokers: brokers, Prefix: kafkatest.Prefix(), Lanes: 3}.withDefaults()
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

// sharing returns a transport that shares the lanes of prefix.
func sharing(t *testing.T, brokers []string, prefix, dir string, topics map[string]flow.Topic) *Transport {
	t.Helper()
	return opened(t, Config{Brokers: brokers, Prefix: prefix, Lanes: testLanes, Dir: dir, SessionTimeout: 6 * time.Second, Topics: topics})
}

func testAdmin(t *testing.T, c Config) sarama.ClusterAdmin {
	t.Helper()
	conf, err := c.cluster().Sarama()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sarama.NewClusterAdmin(c.Brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	return admin
}
