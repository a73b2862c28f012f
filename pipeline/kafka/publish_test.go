package kafka

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/kafkatest"
)

// TestHintsAreSentAgain: a request that the brokers did not take is not forgotten.
func TestHintsAreSentAgain(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Cluster(t)
	c := testConfig(cluster.ListenAddrs())
	topics := map[string]flow.Topic{flow.TopicRequests: {Groups: []string{"g"}, Ephemeral: true}}
	tr := openTransportWith(t, c, flow.Wiring{Topics: topics})
	got := subscribe(t, tr, "g", flow.TopicRequests)
	var refusals atomic.Int32
	cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		asked, resp := req.(*kmsg.ProduceRequest), req.ResponseKind().(*kmsg.ProduceResponse)
		if asked.Topics[0].Topic != c.Prefix+flow.TopicRequests || refusals.Add(1) > 1 {
			return nil, nil, false
		}
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic = asked.Topics[0].Topic
		for _, p := range asked.Topics[0].Partitions {
			part := kmsg.NewProduceResponseTopicPartition()
			part.Partition, part.ErrorCode = p.Partition, kerr.TopicAuthorizationFailed.Code // which is not retried
			topic.Partitions = append(topic.Partitions, part)
		}
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	tr.publishInBackground([]output{outputs{tr}.Output(flow.Message{ID: "1", Topic: flow.TopicRequests, Key: "k", Type: flow.TypeRequest})})
	m := <-got
	m.Ack()
	if n := refusals.Load(); m.Metadata.Get("ce_id") != "1" || n < 2 {
		t.Errorf("got %v after %d attempts", m.Metadata, n)
	}
}
