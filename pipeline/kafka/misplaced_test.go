package kafka_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
)

// misplace writes a message for the key "k" into each lane of topic, with what body says, as
// a program does that packs its messages and has a partitioner of its own.
func misplace(t *testing.T, brokers []string, topic string, body func(lane int) string) {
	t.Helper()
	c := sarama.NewConfig()
	c.Version, c.Producer.Partitioner, c.Producer.Return.Successes = sarama.V2_8_0_0, sarama.NewManualPartitioner, true
	c.Producer.Compression, c.Producer.MaxMessageBytes = sarama.CompressionGZIP, 20<<20
	p, err := sarama.NewSyncProducer(brokers, c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	header := func(k, v string) sarama.RecordHeader { return sarama.RecordHeader{Key: []byte(k), Value: []byte(v)} }
	for lane := range int32(testLanes) {
		_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Partition: lane, Key: sarama.StringEncoder("k"), Value: sarama.StringEncoder(body(int(lane))), Headers: []sarama.RecordHeader{
			header("ce_id", fmt.Sprint("m", lane)), header("ce_type", "test.v1"),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestMisplacedOnce adds a group in front of one that handled misplaced messages: they are not
// moved again.
func TestMisplacedOnce(t *testing.T) {
	brokers, prefix := brokers(t), "misplaced-"+rand.Text()+"."
	topics := func(groups ...string) map[string]flow.Topic {
		return map[string]flow.Topic{"in": {Groups: groups}, "out": {}}
	}
	before := open(t, brokers, prefix, "", topics("b"))
	count(t, before, "b", "in")
	misplace(t, brokers, prefix+"in", func(int) string { return "" })
	results(t, brokers, prefix, testLanes)
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	tr := open(t, brokers, prefix, "", topics("a", "b"))
	for _, group := range []string{"a", "b"} {
		count(t, tr, group, "in")
	}
	results(t, brokers, prefix, 2*testLanes) // and no more of group b
	for _, group := range []string{"a", "b"} {
		v, _, err := tr.State(group, "k").Get("n")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(strings.Fields(string(v))); n != testLanes {
			t.Errorf("group %s handled %d messages (%s), want %d", group, n, v, testLanes)
		}
	}
}

// TestMisplacedHuge writes misplaced messages that are, unpacked, larger than a record may be:
// they go to the dead letters, and what is behind them is handled.
func TestMisplacedHuge(t *testing.T) {
	brokers, prefix := brokers(t), "misplaced-"+rand.Text()+"."
	tr := open(t, brokers, prefix, "", map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}, flow.TopicDead: {}})
	own := -1
	misplace(t, brokers, prefix+"in", func(int) string { return strings.Repeat("x", 7<<20) })
	misplace(t, brokers, prefix+"in", func(int) string { return "behind" })
	dead, err := tr.Subscriber("d").Subscribe(context.Background(), flow.TopicDead)
	if err != nil {
		t.Fatal(err)
	}
	handled, err := tr.Subscriber("g").Subscribe(context.Background(), "in")
	if err != nil {
		t.Fatal(err)
	}
	var small, letters int
	for small < testLanes || letters < testLanes-1 {
		select {
		case m := <-dead:
			letters++
			if !strings.Contains(string(m.Payload), "belongs to partition") {
				t.Errorf("dead letter: %s", m.Payload)
			}
			m.Ack()
		case m := <-handled:
			if len(m.Payload) == len("behind") {
				small++
			} else {
				own++ // the one that stands where it belongs
			}
			m.Ack()
		}
	}
	if own != 0 {
		t.Errorf("%d large messages were handled, want 1", own+1)
	}
}
