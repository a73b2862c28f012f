package kafka

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/kafkatest"
)

// TestLanesMove publishes numbered messages while processes come and go, orderly and with
// disks that are kept, lost, or out of date: every message is handled once, in order, on top
// of the state that the one before it left.
func TestLanesMove(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, c Config) {
		kept := t.TempDir()
		topics := map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}}
		const keys, rounds = 16, 12
		first := openSharing(t, c.Brokers, c.Prefix, kept, topics)
		countMessages(t, first, "g", "in")
		live := []*Transport{first}
		for round := range rounds {
			for k := range keys {
				key := fmt.Sprint("k", k)
				publish(t, live[0], "in", key, fmt.Sprintf("%s.%d", key, round))
			}
			dir := ""
			if round%3 == 2 {
				dir = t.TempDir()
			}
			next := openSharing(t, c.Brokers, c.Prefix, dir, topics)
			countMessages(t, next, "g", "in")
			live = append(live, next)
			if len(live) > 2 {
				mustClose(t, live[0])
				live = live[1:]
			}
		}
		got := readResults(t, c.Brokers, c.Prefix, keys*rounds)
		for k := range keys {
			key, want := fmt.Sprint("k", k), ""
			for round := range rounds {
				want += fmt.Sprintf("%s.%d ", key, round)
			}
			if got[key] != want {
				t.Errorf("%s: handled %q, want %q", key, got[key], want)
			}
		}
	})
}

// TestTooLarge emits a message, and writes a value, that no record can hold: the handler can
// find out, and the lane continues.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	tr := openSharing(t, kafkatest.Start(t), kafkatest.Prefix(), "", nil)
	fits := make(chan error, 10)
	ms := subscribe(t, tr, "g", "in")
	huge := make([]byte, 7<<20)
	_, _ = rand.Read(huge) // does not pack
	go func() {
		for m := range ms {
			tx, _ := flow.TxFrom(m.Context())
			switch m.UUID {
			case "emits":
				tx.Emit(flow.Message{ID: "x", Topic: "out", Key: "k", Type: "test.v1", Body: huge})
			case "writes":
				if err := tx.State("k").Set("huge", huge); err != nil {
					t.Error(err)
				}
			}
			fits <- tx.Fits()
			tx.Reset()
			m.Ack()
		}
	}()
	for id, want := range map[string]bool{"emits": false, "writes": false, "neither": true} {
		publish(t, tr, "in", "k", id)
		err := <-fits
		if class, _ := failure.ClassOf(err); (err == nil) != want || err != nil && class != failure.ClassPermanent {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := tr.Publish(context.Background(), flow.Message{ID: "x", Topic: "out", Key: "k", Type: "test.v1", Body: huge}); err == nil {
		t.Error("a message that no record can hold was published")
	}
}

// publishMisplaced writes a message for the key "k" into each lane of topic, with what body says, as
// a program does that packs its messages and has a partitioner of its own.
func publishMisplaced(t *testing.T, brokers []string, topic string, body func(lane int) string) {
	t.Helper()
	p := newLaneProducer(t, brokers)
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

// TestMisplacedOnce puts messages into lanes that are not their keys': they are moved to the right
// ones, once, though two groups read the topic. The second group is added later.
func TestMisplacedOnce(t *testing.T) {
	t.Parallel()
	brokers, prefix := kafkatest.Start(t), kafkatest.Prefix()
	topics := func(groups ...string) map[string]flow.Topic {
		return map[string]flow.Topic{"in": {Groups: groups}, "out": {}}
	}
	before := openSharing(t, brokers, prefix, "", topics("b"))
	countMessages(t, before, "b", "in")
	publishMisplaced(t, brokers, prefix+"in", func(int) string { return "" })
	readResults(t, brokers, prefix, testLanes)
	mustClose(t, before)
	tr := openSharing(t, brokers, prefix, "", topics("a", "b"))
	for _, group := range []string{"a", "b"} {
		countMessages(t, tr, group, "in")
	}
	readResults(t, brokers, prefix, 2*testLanes) // and no more of group b
	for !tr.Idle() {
		time.Sleep(time.Millisecond)
	}
	for _, group := range []string{"a", "b"} {
		v, _, err := tr.State(group, "k").Get("n")
		if err != nil {
			t.Fatal(err)
		}
		for lane := range testLanes {
			if id := fmt.Sprint("m", lane, " "); strings.Count(string(v), id) != 1 {
				t.Errorf("group %s handled %q, want %q once", group, v, id)
			}
		}
	}
}

// TestMisplacedHuge writes misplaced messages that are, unpacked, larger than a record may be:
// they go to the dead letters, and what is behind them is handled.
func TestMisplacedHuge(t *testing.T) {
	t.Parallel()
	brokers, prefix := kafkatest.Start(t), kafkatest.Prefix()
	tr := openSharing(t, brokers, prefix, "", map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}, flow.TopicDead: {}})
	own := -1
	publishMisplaced(t, brokers, prefix+"in", func(int) string { return strings.Repeat("x", 7<<20) })
	publishMisplaced(t, brokers, prefix+"in", func(int) string { return "behind" })
	dead, handled := subscribe(t, tr, "d", flow.TopicDead), subscribe(t, tr, "g", "in")
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
