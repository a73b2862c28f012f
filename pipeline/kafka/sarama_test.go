package kafka

import (
	"math"
	"testing"

	"github.com/IBM/sarama"
)

// The hashes are those of UtilsTest.testMurmur2 in Kafka's own tests.
func TestPartitionOf(t *testing.T) {
	for key, hash := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		for _, lanes := range []int{1, 3, 32, math.MaxInt32} {
			if got, want := partitionOf(key, lanes), int(hash&0x7fffffff)%lanes; got != want {
				t.Errorf("partitionOf(%q, %d): got %d, want %d", key, lanes, got, want)
			}
		}
	}
}

func TestPartitionOfEmptyKeyStays(t *testing.T) {
	want := partitionOf("", 1000)
	for range 20 {
		if got := partitionOf("", 1000); got != want {
			t.Fatalf("got %d and %d", want, got)
		}
	}
}

// sarama takes all configurations, and what no default gives is in them.
func TestConfigurations(t *testing.T) {
	c := Config{Brokers: []string{"127.0.0.1:1"}, InstanceID: "one"}.withDefaults()
	group, err := c.groupConfig()
	if err != nil {
		t.Fatal(err)
	}
	producer, err := c.producerConfig()
	if err != nil {
		t.Fatal(err)
	}
	txn, err := c.txnConfig("vokter-7")
	if err != nil {
		t.Fatal(err)
	}
	for name, conf := range map[string]*sarama.Config{"group": group, "producer": producer, "txn": txn} {
		if err := conf.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if conf.ClientID != "vokter" || conf.Consumer.IsolationLevel != sarama.ReadCommitted || conf.Metadata.AllowAutoTopicCreation {
			t.Errorf("%s: got client %q, isolation %d, topics made unasked: %t", name, conf.ClientID, conf.Consumer.IsolationLevel, conf.Metadata.AllowAutoTopicCreation)
		}
	}
	if g := group.Consumer.Group; group.Net.ReadTimeout <= g.Rebalance.Timeout || g.InstanceId != "one" || g.Session.Timeout != c.SessionTimeout {
		t.Errorf("got read timeout %v, rebalance timeout %v, instance %q, session %v", group.Net.ReadTimeout, g.Rebalance.Timeout, g.InstanceId, g.Session.Timeout)
	}
	if !producer.Producer.Idempotent || producer.Producer.RequiredAcks != sarama.WaitForAll || producer.Producer.MaxMessageBytes != 6<<20 {
		t.Errorf("got idempotent %t, acks %d, max %d", producer.Producer.Idempotent, producer.Producer.RequiredAcks, producer.Producer.MaxMessageBytes)
	}
	if txn.Producer.Transaction.ID != "vokter-7" || producer.Producer.Transaction.ID != "" {
		t.Errorf("got transactional IDs %q and %q", txn.Producer.Transaction.ID, producer.Producer.Transaction.ID)
	}
}

// A heartbeat comes more often than the session ends.
func TestHeartbeatFitsShortSessions(t *testing.T) {
	c := Config{Brokers: []string{"127.0.0.1:1"}, SessionTimeout: minSessionTimeout}.withDefaults()
	conf, err := c.groupConfig()
	if err != nil {
		t.Fatal(err)
	}
	if err := conf.Validate(); err != nil {
		t.Error(err)
	}
}
