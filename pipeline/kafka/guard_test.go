package kafka

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
)

// TestStateLostWhileBrokersMove has a broker that cannot say at first whether state was lost:
// the topic of the state is not made before that is known.
func TestStateLostWhileBrokersMove(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	c := testConfig(cluster.ListenAddrs())
	c.Topics = map[string]flow.Topic{flow.TopicChanges: {}}
	tr, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Publish(t.Context(), flow.Message{ID: "1", Topic: flow.TopicChanges, Key: "k", Type: "test.v1"}); err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if err := testAdmin(t, c).DeleteTopic(c.Prefix + admin.TopicState); err != nil {
		t.Fatal(err)
	}
	asked := refuseOffsets(cluster, 2) // sarama asks twice each time
	tr, err = Open(t.Context(), c)
	if err == nil {
		_ = tr.Close()
	}
	if err == nil || !strings.Contains(err.Error(), admin.TopicState+" is missing or empty") {
		t.Errorf("Open: %v, want a refusal that names the topic", err)
	}
	if n := asked.Load(); n < 3 {
		t.Errorf("the brokers were asked %d times only", n)
	}
}
