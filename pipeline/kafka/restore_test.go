package kafka

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/test/kafkatest"
)

// handleOne publishes a message for k, handles it, and returns what was kept for k before.
func handleOne(t *testing.T, dir string, c Config) (before string) {
	t.Helper()
	tr := openTransportWith(t, c, flow.Wiring{Dir: dir})
	in := subscribe(t, tr, "g", "in")
	publish(t, tr, "in", "k", "1")
	m := <-in
	tx, _ := flow.TxFrom(m.Context())
	v, _, err := tx.State("k").Get("n")
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.State("k").Set("n", []byte("of "+c.Prefix)); err != nil {
		t.Fatal(err)
	}
	m.Ack()
	mustClose(t, tr)
	return string(v)
}

// TestCopyOfOtherTopics: what a directory holds of topics with another prefix is not taken for
// that of the present ones: neither state nor positions.
func TestCopyOfOtherTopics(t *testing.T) {
	t.Parallel()
	a := testConfig(kafkatest.Start(t))
	b, dir := a, t.TempDir()
	b.Prefix, b.Group = "b.", "b"
	for _, step := range []struct {
		c    Config
		want string
	}{{a, ""}, {a, "of " + a.Prefix}, {b, ""}, {b, "of b."}, {a, "of " + a.Prefix}} {
		if got := handleOne(t, dir, step.c); got != step.want {
			t.Errorf("with %s: got %q, want %q", step.c.Prefix, got, step.want)
		}
	}
}

// TestCopyRefused: a copy with another number of lanes, or one that is damaged.
func TestCopyRefused(t *testing.T) {
	t.Parallel()
	a := testConfig(kafkatest.Start(t))
	top := t.TempDir()
	handleOne(t, top, a)
	dir := filepath.Join(top, "kafka")
	b := a
	b.Prefix, b.Group, b.Lanes = "b.", "b", 4
	_, err := startTransport(t.Context(), b, flow.Wiring{Dir: top})
	kafkatest.Refused(t, err, "the copy of the state in "+dir+" has 3 lanes and the topics have 4: remove that directory")
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	if err := os.Truncate(manifests[len(manifests)-1], 3); err != nil {
		t.Fatal(err)
	}
	_, err = startTransport(t.Context(), a, flow.Wiring{Dir: top})
	kafkatest.Refused(t, err, "the store in "+dir+" is damaged")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got := handleOne(t, top, a); got != "of "+a.Prefix {
		t.Errorf("without its copy: got %q", got)
	}
}

// TestTopicMadeAgain: a topic that was deleted and made again between two runs is refused.
func TestTopicMadeAgain(t *testing.T) {
	t.Parallel()
	c := testConfig(kafkatest.Start(t))
	handleOne(t, "", c)
	if err := kafkatest.Admin(t, c.Brokers).DeleteTopic(c.Prefix + "in"); err != nil {
		t.Fatal(err)
	}
	kafkatest.Mention(t, brokenError(t, c), "topic "+c.Prefix+"in was deleted and made again since the last run", "another topic_prefix")
}

// TestStateOfANewerVersion is refused.
func TestStateOfANewerVersion(t *testing.T) {
	t.Parallel()
	c := testConfig(kafkatest.Start(t))
	handleOne(t, "", c)
	newer := &sarama.ProducerMessage{Topic: c.Prefix + admin.TopicState, Key: sarama.StringEncoder("\x08s"), Value: sarama.StringEncoder("x")}
	if _, _, err := newLaneProducer(t, c.Brokers).SendMessage(newer); err != nil {
		t.Fatal(err)
	}
	kafkatest.Mention(t, brokenError(t, c), "the state topic was written by another version of Vokter (format 8, this one knows 7): use that version")
}

// brokenError returns why a Transport of c cannot continue.
func brokenError(t *testing.T, c Config) string {
	t.Helper()
	broken := make(chan error, 16)
	tr, err := startTransport(t.Context(), c, flow.Wiring{OnBroken: func(err error) {
		select {
		case broken <- err:
		default:
		}
	}})
	if err != nil {
		return err.Error()
	}
	defer func() { _ = tr.Close() }()
	select {
	case err := <-broken:
		return err.Error()
	case <-time.After(20 * time.Second):
		return "nothing was reported"
	}
}

// TestStateLostWhileBrokersMove has a broker that cannot say at first whether state was lost:
// the topic of the state is not made before that is known.
func TestStateLostWhileBrokersMove(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Cluster(t)
	c := testConfig(cluster.ListenAddrs())
	w := flow.Wiring{Topics: map[string]flow.Topic{flow.TopicChanges: {}}}
	tr := openTransportWith(t, c, w)
	publish(t, tr, flow.TopicChanges, "k", "1")
	mustClose(t, tr)
	if err := kafkatest.Admin(t, c.Brokers).DeleteTopic(c.Prefix + admin.TopicState); err != nil {
		t.Fatal(err)
	}
	asked := refuseOffsets(cluster, 2) // sarama asks twice each time
	_, err := startTransport(t.Context(), c, w)
	kafkatest.Refused(t, err, admin.TopicState+" is missing or empty")
	if n := asked.Load(); n < 3 {
		t.Errorf("the brokers were asked %d times only", n)
	}
}
