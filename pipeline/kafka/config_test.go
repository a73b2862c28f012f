package kafka

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/test/kafkatest"
)

func TestValidate(t *testing.T) {
	with := func(f func(*Config)) Config {
		c := Config{Brokers: []string{"127.0.0.1:9092"}}
		f(&c)
		return c
	}
	for _, tt := range []struct {
		name   string
		config Config
		want   string // begins the only mistake; empty: none
		says   string
	}{
		{name: "least", config: with(func(*Config) {})},
		{name: "most", config: Config{
			Brokers: []string{"a.example:9092", "[::1]:9092"}, Prefix: "shop_1-a.", Lanes: 8, Replication: 3, CreateTopics: new(false), Group: "g",
			InstanceID: "vokter-0", SessionTimeout: 30 * time.Second,
		}},
		{name: "prefix", config: with(func(c *Config) { c.Prefix = "a b" }), want: "topic_prefix", says: "letters, digits"},
		{name: "long prefix", config: with(func(c *Config) { c.Prefix = strings.Repeat("a", 151) }), want: "topic_prefix", says: "at most 150"},
		{name: "lanes", config: with(func(c *Config) { c.Lanes = -1 }), want: "partitions"},
		{name: "replication", config: with(func(c *Config) { c.Replication = -1 }), want: "replication"},
		{name: "instance", config: with(func(c *Config) { c.InstanceID = "ä" }), want: "instance_id"},
		{name: "session", config: with(func(c *Config) { c.SessionTimeout = time.Millisecond }), want: "session_timeout", says: "at least 500ms"},
	} {
		t.Run(tt.name, func(t *testing.T) { kafkatest.Mistake(t, tt.config.Validate(), tt.want, tt.says) })
	}
}

func TestValidateFindsAllMistakes(t *testing.T) {
	err := Config{Prefix: "/", Lanes: -1, SASL: cluster.SASL{Mechanism: "x"}}.Validate()
	kafkatest.Refused(t, err, "brokers: ", "topic_prefix: ", "partitions: ", "sasl.mechanism: ", "sasl.user: ", "sasl.password: ")
}

func TestDefaults(t *testing.T) {
	c := Config{}.withDefaults()
	if c.Prefix != "vokter." || c.Group != "vokter" || c.Lanes != 64 || c.SessionTimeout != 10*time.Second || c.Now == nil || c.Logger == nil {
		t.Errorf("got %+v", c)
	}
	c = Config{Prefix: "shop.", InstanceID: "a"}.withDefaults()
	if c.Group != "shop" || c.SessionTimeout != 45*time.Second {
		t.Errorf("got group %q and session timeout %v, want shop and 45s", c.Group, c.SessionTimeout)
	}
	if c = (Config{Prefix: "."}).withDefaults(); c.Group != "vokter" {
		t.Errorf("got group %q, want vokter", c.Group)
	}
}

// Sarama takes all configurations, and they hold what no default gives.
func TestConfigurations(t *testing.T) {
	c := Config{Brokers: []string{"127.0.0.1:1"}, InstanceID: "one", SessionTimeout: minSessionTimeout}.withDefaults() // heartbeats come more often
	group, err := c.groupConfig()
	if err != nil {
		t.Fatal(err)
	}
	producer, err := c.adminConfig().ProducerConfig()
	if err != nil {
		t.Fatal(err)
	}
	txn, err := c.adminConfig().TxnConfig("vokter-7")
	if err != nil {
		t.Fatal(err)
	}
	for name, conf := range map[string]*sarama.Config{"group": group, "producer": producer, "txn": txn} {
		if err := conf.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.HasPrefix(conf.ClientID, "vokter") || conf.Consumer.IsolationLevel != sarama.ReadCommitted || conf.Metadata.AllowAutoTopicCreation {
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

func TestPlainNamesWhatToMend(t *testing.T) {
	c := Config{InstanceID: "one", Group: "vokter"}
	for err, want := range map[error]string{
		sarama.ErrFencedInstancedId:                  "another process has the same instance_id (one)",
		sarama.ErrTransactionalIDAuthorizationFailed: "allow Write on the transactional IDs that begin with vokter-",
	} {
		kafkatest.Mention(t, c.cause(fmt.Errorf("joining: %w", err)), want)
	}
}
