package kafka

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

func TestConformance(t *testing.T) {
	t.Run("kfake", func(t *testing.T) {
		pipelinetest.TestSink(t, func(t *testing.T) pipelinetest.SinkFake {
			cluster := startFake(t)
			c := Config{Brokers: cluster.ListenAddrs(), Topic: "t"}
			f, s := newFake(t, c)
			f.Hold = func() (<-chan struct{}, func()) { return holdProduce(cluster) }
			f.Faults = map[string]pipelinetest.SinkFault{
				"not allowed": {Arrange: func() { produced(cluster, func() *kerr.Error { return kerr.TopicAuthorizationFailed }) }},
				"too large":   {Arrange: func() { produced(cluster, func() *kerr.Error { return kerr.MessageTooLarge }) }, Class: pipeline.ClassRefused},
				"too few replicas": {Arrange: func() {
					s.conf.Producer.Retry.Max = 1
					produced(cluster, func() *kerr.Error { return kerr.NotEnoughReplicas })
				}},
				"broken connections": {Arrange: func() {
					s.conf.Producer.Retry.Max = 1
					breakConnections(cluster)
				}, Ambiguous: true},
			}
			return f
		})
	})
	t.Run("kafka", func(t *testing.T) {
		brokers := os.Getenv(realEnv)
		if brokers == "" {
			t.Skipf("%s names no brokers", realEnv)
		}
		pipelinetest.TestSink(t, func(t *testing.T) pipelinetest.SinkFake {
			f, _ := newFake(t, Config{Brokers: strings.Split(brokers, ","), Topic: "test-sink-" + strings.ToLower(rand.Text())})
			return f
		})
	})
}

// newFake makes a sink that writes to the topic of c, which is made and has one partition.
func newFake(t *testing.T, c Config) (pipelinetest.SinkFake, *Sink) {
	c.MaxMessageBytes = 4 << 20
	makeTopic(t, c, 1, map[string]string{"max.message.bytes": "4194304"})
	client, err := sarama.NewClient(c.Brokers, sarama.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s := build(t, c)
	return pipelinetest.SinkFake{Sink: s, Got: func() []pipelinetest.Arrived {
		end, err := client.GetOffset(c.Topic, 0, sarama.OffsetNewest)
		if err != nil {
			t.Fatal(err)
		}
		var all []pipelinetest.Arrived
		for _, m := range records(t, c, int(end)) {
			var n pipeline.Notification
			if err := json.Unmarshal(m.Value, &n); err != nil {
				t.Fatal(err)
			}
			a := pipelinetest.Arrived{ID: headersOf(m)["ce_id"]}
			for _, d := range n.Diffs {
				a.Texts = append(a.Texts, d.Text)
			}
			all = append(all, a)
		}
		return all
	}}, s
}

// breakConnections makes each attempt to write end the connection.
func breakConnections(cluster *kfake.Cluster) {
	cluster.ControlKey(produceKey, func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return nil, errors.New("the connection breaks"), true
	})
}

// holdProduce holds the next attempt to write up, and the cluster with it.
func holdProduce(cluster *kfake.Cluster) (began <-chan struct{}, release func()) {
	begin, end := make(chan struct{}), make(chan struct{})
	asked := sync.OnceFunc(func() { close(begin) })
	cluster.ControlKey(produceKey, func(kmsg.Request) (kmsg.Response, error, bool) {
		asked()
		cluster.SleepControl(func() { <-end })
		return nil, nil, false
	})
	return begin, sync.OnceFunc(func() { close(end) })
}
