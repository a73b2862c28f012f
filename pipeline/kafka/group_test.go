package kafka

import (
	"testing"

	"github.com/IBM/sarama"
)

// Sarama takes all configurations, and they hold what no default gives.
func TestConfigurations(t *testing.T) {
	c := Config{Brokers: []string{"127.0.0.1:1"}, InstanceID: "one"}.withDefaults()
	group, err := c.groupConfig()
	if err != nil {
		t.Fatal(err)
	}
	producer, err := c.admin().ProducerConfig()
	if err != nil {
		t.Fatal(err)
	}
	txn, err := c.admin().TxnConfig("vokter-7")
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
