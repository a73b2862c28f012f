package kafka

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/kafkatest"
)

// TestBrokersAway: that brokers went away while the Transport works is what Ready says, and one
// warning.
func TestBrokersAway(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Cluster(t)
	var logged kafkatest.Log
	c := testConfig(cluster.ListenAddrs())
	c.Logger = logged.Logger()
	tr, err := startTransport(t.Context(), c, flow.Wiring{})
	if err != nil {
		t.Fatal(err)
	}
	<-tr.Gained()
	cluster.Close()
	for tr.Ready() == nil && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	kafkatest.Mention(t, tr.Ready().Error(), "kafka: ", "(for ")
	if n := strings.Count(logged.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings: %s", n, logged.String())
	}
	if err := tr.Close(); err != nil {
		t.Logf("closing without brokers: %v", err)
	}
	kafkatest.Mention(t, logged.String(), "leaving the consumer group failed")
}

// TestPublishToNewTopicWhileAway publishes to topics that nobody declared while brokers are
// away: each call ends with its context, also while another call makes a topic.
func TestPublishToNewTopicWhileAway(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Cluster(t)
	tr, err := startTransport(t.Context(), testConfig(cluster.ListenAddrs()), flow.Wiring{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	<-tr.Gained()
	cluster.Close()
	over := errors.New("over")
	publish := func(topic string) {
		t.Helper()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, over)
		defer cancel()
		if err := tr.Publish(ctx, flow.Message{ID: "1", Topic: topic, Key: "k", Type: "test.v1"}); !errors.Is(err, over) {
			t.Errorf("got %v, want the cause of the context", err)
		}
	}
	publish("new")
	tr.creatingTopic <- struct{}{} // as a call does that makes a topic
	publish("other")
	<-tr.creatingTopic
}

// TestTailWaits: a broker that has just come back leads no partition for a moment, and that
// is no reason to give up.
func TestTailWaits(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Cluster(t)
	c := testConfig(cluster.ListenAddrs())
	tr := openTransportWith(t, c, flow.Wiring{Topics: map[string]flow.Topic{flow.TopicDecisions: {Ephemeral: true}}})
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

// TestWatchedWhileTheDiskIsFull looks at a transport while the copy of a lane is written, which
// waits for the disk: who watches is answered, and other lanes go on.
func TestWatchedWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	tr := openTransport(t, testConfig(kafkatest.Start(t)))
	<-tr.Gained()
	full, release := make(chan struct{}), make(chan struct{})
	written := make(chan error, 1)
	go func() {
		written <- tr.writeIfOwned(tr.lease(0), func(*store.Batch) error {
			close(full)
			<-release
			return nil
		})
	}()
	<-full
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if len(tr.Gauges()) == 0 || tr.Epoch("k") == 0 {
			t.Error("there are no gauges or no epoch")
		}
		if err := tr.Ready(); err != nil {
			t.Errorf("it is not ready: %v", err)
		}
		tr.declaredTopic("in")
	}()
	select {
	case <-answered:
	case <-time.After(testTimeout):
		t.Error("who watches waits for the disk")
	}
	close(release)
	<-answered
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// TestMissingRights withholds one right after the other: Ready and one line of the log name
// it, and the Transport continues by itself once it is granted.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		without sarama.AclOperation
		kind    sarama.AclResourceType
		on      string
		want    string
	}{
		"reading one topic":     {sarama.AclOperationRead, sarama.AclResourceTopic, "p.snapshots", "allow Read on the topic p.snapshots"},
		"reading the state":     {sarama.AclOperationRead, sarama.AclResourceTopic, "p.state", "allow Read on the topic p.state"},
		"writing":               {sarama.AclOperationWrite, sarama.AclResourceTopic, "p.snapshots", "allow Write on the topic p.snapshots"},
		"the group":             {sarama.AclOperationRead, sarama.AclResourceGroup, "p", "allow Read on the group p"},
		"the transactional IDs": {sarama.AclOperationAll, sarama.AclResourceTransactionalID, "p-0", "allow Write on the transactional IDs that begin with p-"},
		"seeing the group":      {sarama.AclOperationDescribe, sarama.AclResourceGroup, "p", "allow Read on the group p"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers := kafkatest.Start(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "secret"),
				kfake.User("PLAIN", "vokter", "secret", neededACLs()...))
			c := Config{Brokers: brokers, Prefix: "p.", Lanes: 2, SASL: cluster.SASL{Mechanism: "PLAIN", User: "admin", Password: registry.NewSecret("secret")}}.withDefaults()
			conf, err := c.clusterConfig().Sarama()
			if err != nil {
				t.Fatal(err)
			}
			admin, err := sarama.NewClusterAdmin(brokers, conf)
			if err != nil {
				t.Fatal(err)
			}
			defer admin.Close()
			denied := sarama.Acl{Principal: "User:vokter", Host: "*", Operation: test.without, PermissionType: sarama.AclPermissionDeny}
			on := sarama.Resource{ResourceType: test.kind, ResourceName: test.on, ResourcePatternType: sarama.AclPatternLiteral}
			if err := admin.CreateACLs([]*sarama.ResourceAcls{{Resource: on, Acls: []*sarama.Acl{&denied}}}); err != nil {
				t.Fatal(err)
			}
			var logged kafkatest.Log
			c.SASL.User, c.Logger = "vokter", logged.Logger()
			topics := map[string]flow.Topic{"snapshots": {Groups: []string{"g"}}, "health": {}}
			tr, err := startTransport(t.Context(), c, flow.Wiring{Topics: topics})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			tr.checkRights()
			tr.checkRights() // it is logged once
			err = tr.Ready()
			if err == nil {
				t.Fatalf("it is ready without %s", test.want)
			}
			kafkatest.Mention(t, err.Error(), test.want)
			if n := strings.Count(logged.String(), "rights are missing"); n != 1 {
				t.Errorf("%d lines about it, want 1: %s", n, logged.String())
			}
			lines, err := Check(t.Context(), c, topics)
			if told := strings.Contains(strings.Join(lines, " "), test.want); err != nil || told != (test.kind == sarama.AclResourceTopic) {
				t.Errorf("Check: %q, %v, want topics named", lines, err)
			}
			_, err = admin.DeleteACL(sarama.AclFilter{
				ResourceType: test.kind, ResourceName: &test.on, ResourcePatternTypeFilter: sarama.AclPatternLiteral,
				Operation: test.without, PermissionType: sarama.AclPermissionDeny,
			}, false)
			if err != nil {
				t.Fatal(err)
			}
			tr.checkRights()
			kafkatest.Mention(t, logged.String(), "the missing rights were granted")
			<-tr.Gained()
		})
	}
}

// neededACLs are the rights that the guide of operation lists.
func neededACLs() []kfake.ACL {
	var all []kfake.ACL
	give := func(resource kmsg.ACLResourceType, name string, ops ...kmsg.ACLOperation) {
		for _, op := range ops {
			all = append(all, kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypePrefixed, Operation: op, Allow: true})
		}
	}
	give(kmsg.ACLResourceTypeTopic, "p.", kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationCreate)
	give(kmsg.ACLResourceTypeGroup, "p", kmsg.ACLOperationRead)
	give(kmsg.ACLResourceTypeTransactionalId, "p-", kmsg.ACLOperationWrite)
	return all
}

// TestReadyWhileLanesWork: to ask whether the process is ready stops no lane. Each held a lock that the other
// waited for.
func TestReadyWhileLanesWork(t *testing.T) {
	t.Parallel()
	tr := openTransport(t, testConfig(kafkatest.Start(t)))
	<-tr.Gained()
	n := tr.lease(0)
	c := n.cursor(consumer{Group: "g", Topic: "in"})
	ended, asked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(asked)
		for {
			select {
			case <-ended:
				return
			default:
				if err := tr.Ready(); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	go func() {
		defer close(ended)
		for range 300_000 {
			if err := n.merge(c, engine.Work{Kind: engine.FromWake}, &engine.Effects[output]{Writes: new(engine.Writes)}, false); err != nil {
				t.Error(err)
			}
		}
	}()
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal("the lane and the question whether it is ready wait for each other")
	}
}
