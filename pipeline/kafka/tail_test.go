package kafka

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestTailWaits: a broker that has just come back leads no partition for a moment, and that
// is no reason to give up.
func TestTailWaits(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	c := testConfig(cluster.ListenAddrs())
	c.Topics = map[string]flow.Topic{flow.TopicDecisions: {Ephemeral: true}}
	tr := opened(t, c)
	refusals := refuseOffsets(cluster, 4) // sarama asks twice each time
	if _, err := tr.Tail(t.Context(), flow.TopicDecisions); err != nil {
		t.Errorf("got %v after %d refusals", err, refusals.Load())
	}
	if refusals.Load() < 5 {
		t.Errorf("the broker refused %d times only", refusals.Load())
	}
}

// refuseOffsets makes cluster answer the first n questions for where a topic ends as a broker
// does that does not lead it any more, and counts all of them.
func refuseOffsets(cluster *kfake.Cluster, n int32) *atomic.Int32 {
	var asked atomic.Int32
	cluster.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if asked.Add(1) > n {
			return nil, nil, false
		}
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, topic := range req.(*kmsg.ListOffsetsRequest).Topics {
			answer := kmsg.NewListOffsetsResponseTopic()
			answer.Topic = topic.Topic
			for _, p := range topic.Partitions {
				part := kmsg.NewListOffsetsResponseTopicPartition()
				part.Partition, part.ErrorCode = p.Partition, kerr.NotLeaderForPartition.Code
				answer.Partitions = append(answer.Partitions, part)
			}
			resp.Topics = append(resp.Topics, answer)
		}
		return resp, nil, true
	})
	return &asked
}
