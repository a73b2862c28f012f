package admin

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/test/kafkatest"
)

// TestTransactionIsOneRequest: the records of a transaction for several partitions are sent to their broker
// together. Where the machine is busy a transaction may take more requests, so the best of many counts.
func TestTransactionIsOneRequest(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Cluster(t, kfake.SeedTopics(1, "a", "b", "c"))
	var requests atomic.Int32
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		requests.Add(1)
		return nil, nil, false
	})
	p, err := testConfig(cluster.ListenAddrs(), kafkatest.Prefix()).TxnProducer(t.Context(), "id")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	fewest := int32(1000)
	for range 30 {
		var ms []*sarama.ProducerMessage
		for i := range 60 {
			ms = append(ms, &sarama.ProducerMessage{Topic: "abc"[i%3:][:1], Key: sarama.StringEncoder(fmt.Sprint(i)), Value: sarama.StringEncoder("v")})
		}
		before := requests.Load()
		if err := p.Transact(ms); err != nil {
			t.Fatal(err)
		}
		fewest = min(fewest, requests.Load()-before)
	}
	if fewest != 1 {
		t.Errorf("each of 30 transactions took at least %d requests to write, want 1", fewest)
	}
}
